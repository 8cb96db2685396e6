package transport

// Process returns the incarnation of the node's process at the other end of the
// present connection, "" if there is none: a link may already lead to a process
// that nobody has registered yet.
func (p *Peers) Process(node string) string {
	if node == p.cfg.Name {
		return p.cfg.Incarnation
	}
	p.mu.RLock()
	l := p.links[node]
	p.mu.RUnlock()
	if l == nil {
		return ""
	}
	c := l.cur.Load()
	if c == nil {
		return ""
	}
	return c.from.Incarnation
}
