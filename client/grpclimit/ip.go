package grpclimit

import (
	"context"
	"net/netip"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/ringlimit/ringlimit/client/internal/clientip"
)

// hops are the proxies to believe about who called them, and where they write it. The
// zero value believes nobody.
type hops struct {
	key     string // of the metadata
	proxies clientip.Proxies
}

// caller is the address of who calls; not valid if it is not known.
func (h hops) caller(ctx context.Context) netip.Addr {
	var lists []string
	if h.key != "" {
		lists = metadata.ValueFromIncomingContext(ctx, h.key)
	}
	return h.proxies.Client(peerIP(ctx), lists, clientip.Parse)
}

// peerIP is the address at the other end of the connection; not valid if it has none.
func peerIP(ctx context.Context) netip.Addr {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return netip.Addr{}
	}
	if tcp, ok := p.Addr.(interface{ AddrPort() netip.AddrPort }); ok {
		return clientip.Plain(tcp.AddrPort().Addr())
	}
	return clientip.Parse(p.Addr.String())
}
