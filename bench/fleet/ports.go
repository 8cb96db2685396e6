package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are taken below the range from which kernels draw the local ports of
// outgoing connections: a node that is down must find its port free again.
const (
	firstPort = 18_000
	lastPort  = 31_000
)

// freePorts returns n ports that are free for TCP and UDP now and are not
// taken at a local address, and adds them to taken: nobody may listen on a port yet that is given to a
// node.
func freePorts(host string, n int, taken map[int]bool) ([]int, error) {
	ports := make([]int, 0, n)
	for range 100 * n {
		p := firstPort + rand.IntN(lastPort-firstPort)
		if taken[p] || !portFree(host, p) {
			continue
		}
		taken[p] = true
		if ports = append(ports, p); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("found %d free ports in %d–%d, need %d", len(ports), firstPort, lastPort, n)
}

func portFree(host string, port int) bool {
	addr := fmt.Sprintf("%s:%d", host, port)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return p.Close() == nil
}
