package transport

// Links is how many other nodes this one keeps in mind.
func (p *Peers) Links() int { return len(p.all()) }

// Hello is what a node that calls itself from begins a connection to another with.
func Hello(from, target string) []byte {
	return hello{purpose: forLink, from: From{Node: from, Incarnation: "1"}, target: target}.append(nil)
}
