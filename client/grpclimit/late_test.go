package grpclimit_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/client"
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
		f := &fake{decide: func(_ context.Context, r client.Request) (client.Decision, error) {
			if strings.HasPrefix(r.Route, "GRPC-MESSAGE:") {
				return granted(), nil
			}
			return allowed(), nil // the opening holds no permit, whose end would end the context
		}}
		var kept grpc.ServerStream
		err := grpclimit.StreamServer(f, grpclimit.PerMessage())(nil, endless{ctx: t.Context()},
			&grpc.StreamServerInfo{FullMethod: "/a.B/C", IsClientStream: true},
			func(_ any, s grpc.ServerStream) error { kept = s; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.RecvMsg(new(int)); err == nil {
			t.Error("it is told to go on")
		}
		time.Sleep(time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.asked) != 2 || len(f.released) != 1 {
			t.Errorf("asked %+v, released %v", f.asked, f.released)
		}
	})
}
