package grpclimit

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// stream is a limited stream, as its handler sees it. One goroutine receives and one
// sends, as grpc.ServerStream has it.
type stream struct {
	grpc.ServerStream
	limiter *limiter
	method  string
	pass    *pass
	each    bool // messages are decided too

	denied error // what RecvMsg returns from now on; nil: nothing was denied. Of the goroutine that receives

	mu      sync.Mutex // guards the rest; held for a moment
	message *pass      // of the last message; nil: there is none
	ended   bool       // the handler has returned, perhaps before a goroutine of its own that receives
}

// Context is that of the call with its Decision; it ends with client.ErrPermitLost as its cause
// if the permit is lost.
func (s *stream) Context() context.Context { return s.pass.ctx }

// SendMsg sends nothing any more when the permit is lost.
func (s *stream) SendMsg(m any) error {
	if err := s.pass.lost(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// RecvMsg receives a message that may be worked on. One that waits for the client does not
// see that the permit was lost meanwhile before it has received something.
func (s *stream) RecvMsg(m any) error {
	if s.denied != nil {
		return s.denied
	}
	if err := s.next(); err != nil {
		s.denied = err
		return err
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := s.pass.lost(); err != nil {
		return err
	}
	if !s.each {
		return nil
	}
	p, err := s.limiter.admit(s.pass.ctx, Call{Method: s.method, Message: m, Stream: true}, s.SetTrailer)
	if err != nil {
		s.denied = err
		return err
	}
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.message = p
	}
	s.mu.Unlock()
	if ended {
		p.end()
		s.denied = gone(context.Canceled)
	}
	return s.denied
}

// end ends the work on messages: what is admitted from now on is given back at once.
func (s *stream) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	_ = s.next() // too late to tell
}

// next ends the work on the last message, and says so if it lost its permit before.
func (s *stream) next() error {
	s.mu.Lock()
	m := s.message
	s.message = nil
	s.mu.Unlock()
	if m == nil {
		return nil
	}
	m.end()
	return m.lost()
}
