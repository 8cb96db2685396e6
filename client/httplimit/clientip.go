package httplimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/ringlimit/ringlimit/client"
)

// ClientIP takes the address of the client, as the principal ip. An IPv6 address counts
// by its /64, which is what one subscriber has: 2001:db8:1:2::/64. trusted are the
// proxies in front of this server, which name the client in X-Forwarded-For; without
// them that is never looked at. See Proxies for whom to name there, and
// ClientIPBehind for the rest there is to choose. It panics for a prefix that is none.
func ClientIP(trusted ...netip.Prefix) Option { return ClientIPBehind(Proxies{Trusted: trusted}) }

// Proxies are those in front of this server.
//
// The address of a client is that of the connection; if that is a trusted proxy, the one
// which the header names last; and so on to the left for as long as proxies are trusted.
// What stands further left is made up by whoever wanted to, and never looked at. Where a
// trusted proxy names nobody, or what is no address, it is itself the client. A connection
// without an address, as over a Unix socket, has no client.
type Proxies struct {
	// Trusted are the addresses of proxies, and of nobody else: no prefix that has
	// clients in it, who would be believed.
	Trusted []netip.Prefix
	// Forwarded says that they name the client in Forwarded (RFC 7239), and not in
	// X-Forwarded-For. Only one of them is looked at: a client can send the other.
	Forwarded bool
	// IPv6Bits is how many bits of an IPv6 address count, 1 … 128; 0 is 64.
	IPv6Bits int
}

// ClientIPBehind is ClientIP with all that can be said of proxies. It panics for what
// Proxies does not allow.
func ClientIPBehind(p Proxies) Option {
	if p.IPv6Bits == 0 {
		p.IPv6Bits = 64
	}
	if p.IPv6Bits < 1 || p.IPv6Bits > 128 {
		panic(fmt.Sprintf("httplimit: %d bits of an IPv6 address, want 1 … 128", p.IPv6Bits))
	}
	trusted := make([]netip.Prefix, len(p.Trusted))
	for i, t := range p.Trusted {
		if !t.IsValid() {
			panic("httplimit: a trusted proxy that is no prefix")
		}
		trusted[i] = unmapped(t.Masked())
	}
	p.Trusted = trusted
	return Fill(func(r *http.Request, q *client.Request) {
		if addr := p.client(r); addr.IsValid() {
			setPrincipal(q, "ip", counted(addr, p.IPv6Bits))
		}
	})
}

// unmapped is a prefix of IPv4 addresses within IPv6 as that of the IPv4 addresses.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// client is the address that the last trusted proxy vouches for.
func (p *Proxies) client(r *http.Request) netip.Addr {
	addr, header, read := address(r.RemoteAddr), "X-Forwarded-For", address
	if p.Forwarded {
		header, read = "Forwarded", forwardedFor
	}
	lines := r.Header[header]
	for i := len(lines) - 1; i >= 0; i-- {
		rest := lines[i]
		for more := true; more; {
			if !p.trusts(addr) {
				return addr
			}
			last := rest
			comma := strings.LastIndexByte(rest, ',')
			if more = comma >= 0; more {
				rest, last = rest[:comma], rest[comma+1:]
			}
			named := read(strings.Trim(last, " \t"))
			if !named.IsValid() {
				return addr
			}
			addr = named
		}
	}
	return addr
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	for _, t := range p.Trusted {
		if t.Contains(addr) {
			return true
		}
	}
	return false
}

// address reads an address with or without a port; the zero Addr if it is none. An IPv4
// address within IPv6 is that IPv4 address, and zones, which mean something on one host
// alone, are cut off.
func address(s string) netip.Addr {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	bare, bracketed := strings.CutPrefix(s, "[")
	if bracketed {
		var closed bool
		if bare, closed = strings.CutSuffix(bare, "]"); !closed {
			return netip.Addr{}
		}
	}
	addr, err := netip.ParseAddr(bare)
	if err != nil || bracketed && !addr.Is6() {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

// counted is an address as policies count by it.
func counted(addr netip.Addr, bits int) string {
	if addr.Is4() || bits == 128 {
		return addr.String()
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		panic(err) // 1 … 127 bits of an IPv6 address without a zone: cannot fail
	}
	return p.String()
}
