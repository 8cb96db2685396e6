package grpclimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/client/grpclimit"
)

// endless is a stream on which there is always another message.
type endless struct {
	grpc.ServerStream
	ctx context.Context
}

func (e endless) Context() context.Context { return e.ctx }
func (endless) RecvMsg(any) error          { return nil }
func (endless) SetTrailer(metadata.MD)     {}

// TestAMessageAfterTheHandlerHoldsNothing: a goroutine that receives may be behind its
// handler, and whatever a message is granted then is given back at once.
func TestAMessageAfterTheHandlerHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{decide: always(granted(), nil)}
		var kept grpc.ServerStream
		err := grpclimit.StreamServer(f, grpclimit.PerMessage())(nil, endless{ctx: t.Context()},
			&grpc.StreamServerInfo{FullMethod: "/a.B/C", IsClientStream: true},
			func(_ any, s grpc.ServerStream) error { kept = s; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.RecvMsg(nil); err == nil {
			t.Error("it is told to go on")
		}
		time.Sleep(time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.asked) != 2 || len(f.released) != 2 {
			t.Errorf("asked %d times, released %v", len(f.asked), f.released)
		}
	})
}
