package simnet

// signal wakes who waits for it. The lock of what it belongs to guards it.
type signal struct{ c chan struct{} } // nil: nobody has waited since it was given

// await returns what is closed when the signal is given next.
func (s *signal) await() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) give() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
