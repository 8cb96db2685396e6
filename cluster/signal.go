package cluster

import "sync"

// signal wakes all who wait, each time it fires. Take the channel first, then
// look at what is waited for: nothing is missed that way. Its zero value is ready.
type signal struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// wait returns a channel that the next fire closes.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
