package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/grpclimit"
)

// messages decides messages by f, in their order from 0, and admits all else.
func messages(f func(n int) (client.Decision, error)) *fake {
	n := -1
	return &fake{decide: func(_ context.Context, r client.Request) (client.Decision, error) {
		if !strings.HasPrefix(r.Route, "GRPC-MESSAGE:") {
			return allowed(), nil
		}
		n++
		return f(n)
	}}
}

// TestMessagesAreDecidedOneByOne: by what they are, and the first that is denied is the last.
func TestMessagesAreDecidedOneByOne(t *testing.T) {
	f := messages(func(n int) (client.Decision, error) {
		if n == 2 {
			return denied(time.Second), nil
		}
		return allowed(), nil
	})
	size := grpclimit.Cost(func(_ context.Context, c grpclimit.Call) int64 {
		if m, ok := c.Message.(*wrapperspb.StringValue); ok && c.Stream {
			return 100 + int64(len(m.Value))
		}
		return 0
	})
	serve(t, f, []grpclimit.Option{grpclimit.PerMessage(), size, exact[0]}, func(t *testing.T, s *server) {
		var again error
		s.chat = func(ss grpc.ServerStream) error {
			err := echo(ss)
			again = ss.RecvMsg(new(wrapperspb.StringValue))
			if err != again {
				t.Errorf("%v, then %v", err, again)
			}
			return err
		}
		o := s.talk(t.Context(), 5)
		if o.code() != codes.ResourceExhausted || o.text != "01" || o.pushback() != "[1000]" || detail[*errdetails.RetryInfo](o) == nil {
			t.Errorf("%v after %q, pushback %s", o.status, o.text, o.pushback())
		}
		var costs []int64
		for _, r := range f.requests() {
			costs = append(costs, r.Cost)
		}
		if len(costs) != 4 || costs[0] != 0 || costs[1] != 101 || costs[3] != 101 {
			t.Errorf("costs %v", costs)
		}
		s.call(t.Context()) // unary calls are as ever
		if n := len(f.requests()); n != 5 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestRequestOfAServersStreamIsNoMessage: its call is one take, as a unary call is.
func TestRequestOfAServersStreamIsNoMessage(t *testing.T) {
	f := messages(func(int) (client.Decision, error) { return denied(1), nil })
	serve(t, f, []grpclimit.Option{grpclimit.PerMessage()}, func(t *testing.T, s *server) {
		c, err := s.conn.NewStream(acme(t.Context()), &service.Streams[1], "/test.Items/List")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.SendMsg(wrapperspb.String("x")), c.CloseSend()); err != nil {
			t.Fatal(err)
		}
		m := new(wrapperspb.StringValue)
		if err := c.RecvMsg(m); err != nil || m.Value != "x" {
			t.Errorf("%v, %q", err, m.Value)
		}
		if err := c.RecvMsg(m); !errors.Is(err, io.EOF) {
			t.Errorf("%v", err)
		}
	})
	if n := len(f.requests()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestUndecidedMessages end their stream, or pass with FailOpen.
func TestUndecidedMessages(t *testing.T) {
	none := func(n int) (client.Decision, error) {
		if n == 1 {
			return client.Decision{}, errors.New("out of reach")
		}
		return allowed(), nil
	}
	serve(t, messages(none), []grpclimit.Option{grpclimit.PerMessage()}, func(t *testing.T, s *server) {
		if o := s.talk(t.Context(), 3); o.code() != codes.Unavailable || o.text != "0" {
			t.Errorf("%v after %q", o.status, o.text)
		}
	})
	serve(t, messages(none), []grpclimit.Option{grpclimit.PerMessage(), grpclimit.FailOpen()}, func(t *testing.T, s *server) {
		if o := s.talk(t.Context(), 3); o.code() != codes.OK || o.text != "012" {
			t.Errorf("%v after %q", o.status, o.text)
		}
	})
}

// TestPermitOfAMessageEndsWithItsWork: at the next message, at the end, and told if it was lost.
func TestPermitOfAMessageEndsWithItsWork(t *testing.T) {
	f := messages(func(int) (client.Decision, error) { return granted(), nil })
	serve(t, f, []grpclimit.Option{grpclimit.PerMessage()}, func(t *testing.T, s *server) {
		s.chat = func(ss grpc.ServerStream) error {
			var m wrapperspb.StringValue
			for n := range 2 {
				if err := ss.RecvMsg(&m); err != nil {
					return err
				}
				f.wantReleased(t, []string{"acme/p"}[:n]...)
				_ = ss.SendMsg(&m)
			}
			return nil
		}
		if o := s.talk(t.Context(), 2); o.code() != codes.OK || o.text != "01" {
			t.Errorf("%v after %q", o.status, o.text)
		}
		f.wantReleased(t, "acme/p", "acme/p")

		f.renew = func(context.Context, string) (time.Duration, bool, error) { return 0, false, nil }
		s.chat = func(ss grpc.ServerStream) error {
			var m wrapperspb.StringValue
			if err := ss.RecvMsg(&m); err != nil {
				return err
			}
			time.Sleep(6 * time.Second)
			return ss.RecvMsg(&m)
		}
		if o := s.talk(t.Context(), 2); o.code() != codes.Aborted {
			t.Errorf("%v", o.status)
		}
	})
}

// TestDelayOfAMessageHoldsTheStream: a leaky bucket makes a fast client slow.
func TestDelayOfAMessageHoldsTheStream(t *testing.T) {
	f := messages(func(int) (client.Decision, error) {
		d := allowed()
		d.Delay = time.Second
		return d, nil
	})
	serve(t, f, []grpclimit.Option{grpclimit.PerMessage()}, func(t *testing.T, s *server) {
		if o := s.talk(t.Context(), 3); o.code() != codes.OK || o.text != "012" || o.took != 3*time.Second {
			t.Errorf("%v after %q and %v", o.status, o.text, o.took)
		}
	})
}
