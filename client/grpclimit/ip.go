package grpclimit

import (
	"context"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// proxies are whom to believe about who called them. The zero value believes nobody.
type proxies struct {
	key     string // of the metadata they write
	trusted []netip.Prefix
}

func newProxies(key string, trusted []netip.Prefix) proxies {
	p := proxies{key: key}
	for _, t := range trusted {
		if !t.IsValid() {
			panic("grpclimit: a trusted proxy that is no prefix")
		}
		t = t.Masked()
		if t.Addr().Is4In6() && t.Bits() >= 96 {
			t = netip.PrefixFrom(t.Addr().Unmap(), t.Bits()-96)
		}
		p.trusted = append(p.trusted, t)
	}
	return p
}

// caller is the address of who calls; not valid if it is not known. The list of hops is
// read from its end for as long as those are trusted.
func (p proxies) caller(ctx context.Context) netip.Addr {
	addr := peerIP(ctx)
	if !p.trust(addr) {
		return addr
	}
	lists := metadata.ValueFromIncomingContext(ctx, p.key)
	for len(lists) > 0 && p.trust(addr) {
		last := len(lists) - 1
		rest, hop, more := cutLast(lists[last])
		if lists[last] = rest; !more {
			lists = lists[:last]
		}
		next := parseHop(strings.TrimSpace(hop))
		if !next.IsValid() {
			return addr
		}
		addr = next
	}
	return addr
}

func (p proxies) trust(a netip.Addr) bool {
	for _, t := range p.trusted {
		if t.Contains(a) {
			return true
		}
	}
	return false
}

// peerIP is the address at the other end of the connection; not valid if it has none.
func peerIP(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}
	}
	if tcp, ok := p.Addr.(interface{ AddrPort() netip.AddrPort }); ok {
		return plain(tcp.AddrPort().Addr())
	}
	return parseHop(p.Addr.String())
}

// counted is an address as policies count by it, "" for none: of an IPv6 address its
// first bits.
func counted(a netip.Addr, bits int) string {
	if !a.IsValid() {
		return ""
	}
	if p, err := a.Prefix(bits); err == nil && a.Is6() && bits < 128 {
		return p.String()
	}
	return a.String()
}

// plain makes one address of those that mean the same.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// cutLast cuts the last entry off a list; more says whether there are others.
func cutLast(list string) (rest, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// parseHop reads an address, with or without a port or brackets; not valid if it is none.
func parseHop(s string) netip.Addr {
	if a, err := netip.ParseAddr(s); err == nil {
		return plain(a)
	}
	if a, err := netip.ParseAddrPort(s); err == nil {
		return plain(a.Addr())
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		if a, err := netip.ParseAddr(s[1 : len(s)-1]); err == nil && a.Is6() {
			return plain(a)
		}
	}
	return netip.Addr{}
}
