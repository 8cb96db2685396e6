package transport

// Links is how many other nodes this one keeps in mind.
func (p *Peers) Links() int { return len(p.all()) }

// Hello is what a node that calls itself from begins a connection to another with.
func Hello(from, target string) []byte {
	return hello{purpose: forLink, from: From{Node: from, Incarnation: "1"}, target: target}.append(nil)
}

// Bulks counts the connections for calls that carry much: idle ones of this side, and
// those that it serves.
func (p *Peers) Bulks() (idle, served int) {
	p.bulk.mu.Lock()
	defer p.bulk.mu.Unlock()
	for _, list := range p.bulk.idle {
		idle += len(list)
	}
	return idle, int(p.bulksServed.Load())
}
