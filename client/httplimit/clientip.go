package httplimit

import (
	"net/http"
	"net/netip"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/internal/clientip"
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
	bits := p.IPv6Bits
	if bits == 0 {
		bits = clientip.SubscriberBits
	}
	if err := clientip.CheckBits(bits); err != nil {
		panic("httplimit: " + err.Error())
	}
	proxies, err := clientip.Trust(p.Trusted)
	if err != nil {
		panic("httplimit: " + err.Error())
	}
	header, read := "X-Forwarded-For", clientip.Parse
	if p.Forwarded {
		header, read = "Forwarded", clientip.Forwarded
	}
	return Fill(func(r *http.Request, q *client.Request) {
		addr := proxies.Client(clientip.Parse(r.RemoteAddr), r.Header[header], read)
		setPrincipal(q, "ip", clientip.Counted(addr, bits))
	})
}
