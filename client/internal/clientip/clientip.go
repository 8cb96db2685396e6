// Package clientip finds whose address a request comes from, behind proxies that may be
// believed and callers who may not. Both middlewares use it, so that one client counts
// as the same over HTTP and over gRPC.
//
// The address of a client is that of the connection; if that is a trusted proxy, the one
// which the list of hops names last; and so on to the left for as long as proxies are
// trusted. What stands further left is made up by whoever wanted to, and never looked at.
// Where a trusted proxy names nobody, or what is no address, it is itself the client.
package clientip

import (
	"fmt"
	"net/netip"
	"strings"
)

// SubscriberBits is how many bits of an IPv6 address count where nobody says otherwise:
// what one subscriber has.
const SubscriberBits = 64

// Proxies are those that are believed about who called them. The zero value believes
// nobody. It never changes once made.
type Proxies struct{ trusted []netip.Prefix }

// Trust makes Proxies of the addresses of proxies; an error for a prefix that is none. A
// prefix of IPv4 addresses within IPv6 stands for the IPv4 addresses.
func Trust(prefixes []netip.Prefix) (Proxies, error) {
	p := Proxies{trusted: make([]netip.Prefix, len(prefixes))}
	for i, t := range prefixes {
		if !t.IsValid() {
			return Proxies{}, fmt.Errorf("trusted proxy %d is no prefix", i)
		}
		t = t.Masked()
		if t.Addr().Is4In6() && t.Bits() >= 96 {
			t = netip.PrefixFrom(t.Addr().Unmap(), t.Bits()-96)
		}
		p.trusted[i] = t
	}
	return p, nil
}

// Client is the address that the last trusted proxy vouches for: peer, as Plain has it, or
// what lists name. lists are the values of the header or metadata that proxies append to,
// in their order, each with hops between commas; read reads one hop. It is not valid where
// peer is not.
func (p Proxies) Client(peer netip.Addr, lists []string, read func(hop string) netip.Addr) netip.Addr {
	addr := peer
	for i := len(lists) - 1; i >= 0; i-- {
		rest := lists[i]
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

func (p Proxies) trusts(addr netip.Addr) bool {
	for _, t := range p.trusted {
		if t.Contains(addr) {
			return true
		}
	}
	return false
}

// Parse reads an address with or without a port, as X-Forwarded-For and RemoteAddr have
// it; the zero Addr if it is none.
func Parse(s string) netip.Addr {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return Plain(at.Addr())
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
	return Plain(addr)
}

// Plain makes one address of those that mean the same: an IPv4 address within IPv6 is that
// IPv4 address, and zones, which mean something on one host alone, are cut off.
func Plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// CheckBits says whether bits are so many as Counted takes.
func CheckBits(bits int) error {
	if bits < 1 || bits > 128 {
		return fmt.Errorf("%d bits of an IPv6 address, want 1 … 128", bits)
	}
	return nil
}

// Counted is a plain address as policies count by it, "" for one that is not valid: of
// IPv6 its first bits, 1 … 128, as in 2001:db8:1:2::/64; all 128 are the address alone.
func Counted(addr netip.Addr, bits int) string {
	if !addr.IsValid() {
		return ""
	}
	if addr.Is4() || bits == 128 {
		return addr.String()
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		panic(err) // 1 … 127 bits of an IPv6 address without a zone: cannot fail
	}
	return p.String()
}
