package grpclimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/grpclimit"
)

// The real client is what the interceptors are for.
var _ grpclimit.Decider = (*client.Client)(nil)

// fake decides as its functions say; by default it allows, and every permit is held.
type fake struct {
	decide  func(ctx context.Context, r client.Request) (client.Decision, error)
	release func(ctx context.Context, id string) (bool, error)
	renew   func(ctx context.Context, id string) (time.Duration, bool, error)

	mu                sync.Mutex // guards what follows
	asked             []client.Request
	released, renewed []string
	renewedAt         []time.Time
}

func (f *fake) Decide(ctx context.Context, r client.Request) (client.Decision, error) {
	f.mu.Lock()
	f.asked = append(f.asked, r)
	f.mu.Unlock()
	if f.decide == nil {
		return allowed(), nil
	}
	return f.decide(ctx, r)
}

func (f *fake) Release(ctx context.Context, r client.Request, id string) (bool, error) {
	f.mu.Lock()
	f.released = append(f.released, r.Tenant+"/"+id)
	f.mu.Unlock()
	if f.release == nil {
		return true, nil
	}
	return f.release(ctx, id)
}

func (f *fake) Renew(ctx context.Context, r client.Request, id string) (time.Duration, bool, error) {
	f.mu.Lock()
	f.renewed, f.renewedAt = append(f.renewed, r.Tenant+"/"+id), append(f.renewedAt, time.Now())
	f.mu.Unlock()
	if f.renew == nil {
		return 10 * time.Second, true, nil
	}
	return f.renew(ctx, id)
}

func (f *fake) requests() []client.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fake) wantReleased(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.released)
	if !slices.Equal(f.released, want) {
		t.Errorf("released %q, want %q", f.released, want)
	}
}

func allowed() client.Decision {
	return client.Decision{Answer: client.Answer{Allowed: true, Limit: 10, Remaining: 9, PolicyID: "items", PolicyVersion: 3}}
}

func denied(wait time.Duration) client.Decision {
	return client.Decision{Answer: client.Answer{Limit: 40, Remaining: 3, RetryAfter: wait, PolicyID: "items", PolicyVersion: 812, Reason: "rate_limited"}}
}

// granted has the permit p, with ten seconds.
func granted() client.Decision {
	d := allowed()
	d.PermitID, d.FencingToken, d.ResetAfter = "p", 7, 10*time.Second
	return d
}

// always is the decide of a fake that says one thing.
func always(d client.Decision, err error) func(context.Context, client.Request) (client.Decision, error) {
	return func(context.Context, client.Request) (client.Decision, error) { return d, err }
}

// server is a gRPC server in memory with one unary and one stream method, and a
// connection to it. The functions are the handlers.
type server struct {
	get  func(ctx context.Context, text string) (string, error)
	chat func(s grpc.ServerStream) error
	conn *grpc.ClientConn
}

const (
	getMethod  = "/test.Items/Get"
	chatMethod = "/test.Items/Chat"
)

func handleGet(srv any, ctx context.Context, decode func(any) error, ic grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.StringValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	return ic(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: getMethod}, func(ctx context.Context, in any) (any, error) {
		out, err := srv.(*server).get(ctx, in.(*wrapperspb.StringValue).Value)
		return wrapperspb.String(out), err
	})
}

var service = grpc.ServiceDesc{
	ServiceName: "test.Items", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Get", Handler: handleGet}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Chat", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, s grpc.ServerStream) error { return srv.(*server).chat(s) },
	}, {
		StreamName: "List", ServerStreams: true,
		Handler: func(srv any, s grpc.ServerStream) error { return srv.(*server).chat(s) },
	}},
}

// echo answers each message with itself.
func echo(s grpc.ServerStream) error {
	for {
		m := new(wrapperspb.StringValue)
		if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(m); err != nil {
			return err
		}
	}
}

// survive makes a status of a handler's panic, as servers do.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = status.Errorf(codes.Internal, "panic: %v", p)
	}
}

// serve runs a test in a bubble against a server that f limits.
func serve(t *testing.T, f *fake, opts []grpclimit.Option, test func(t *testing.T, s *server), dial ...grpc.DialOption) {
	synctest.Test(t, func(t *testing.T) {
		opts = append([]grpclimit.Option{grpclimit.Tenant(grpclimit.Metadata("X-Tenant"))}, opts...)
		s := &server{get: func(_ context.Context, text string) (string, error) { return text, nil }, chat: echo}
		l := bufconn.Listen(1 << 16)
		g := grpc.NewServer(
			grpc.ChainUnaryInterceptor(func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (_ any, err error) {
				defer survive(&err)
				return h(ctx, in)
			}, grpclimit.UnaryServer(f, opts...)),
			grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
				defer survive(&err)
				return h(srv, ss)
			}, grpclimit.StreamServer(f, opts...)),
		)
		g.RegisterService(&service, s)
		var serving sync.WaitGroup
		serving.Go(func() { _ = g.Serve(l) })
		conn, err := grpc.NewClient("passthrough:///test", append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
		if err != nil {
			t.Fatal(err)
		}
		s.conn = conn
		test(t, s)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		serving.Wait()
	})
}

// outcome is what a caller saw of a call.
type outcome struct {
	text            string
	status          *status.Status
	header, trailer metadata.MD
	took            time.Duration
}

func (o outcome) code() codes.Code { return o.status.Code() }

// call makes a unary call for tenant acme.
func (s *server) call(ctx context.Context) outcome {
	var o outcome
	began, out := time.Now(), new(wrapperspb.StringValue)
	err := s.conn.Invoke(acme(ctx), getMethod, wrapperspb.String("hi"), out, grpc.Header(&o.header), grpc.Trailer(&o.trailer))
	o.text, o.status, o.took = out.Value, status.Convert(err), time.Since(began)
	return o
}

// talk opens a stream for tenant acme and sends it n messages, waiting for each answer,
// until it ends. text are the answers, one a byte.
func (s *server) talk(ctx context.Context, n int) outcome {
	var o outcome
	began := time.Now()
	ctx, cancel := context.WithCancel(acme(ctx))
	defer cancel()
	c, err := s.conn.NewStream(ctx, &service.Streams[0], chatMethod)
	for i := 0; err == nil; i++ {
		if i < n {
			_ = c.SendMsg(wrapperspb.String(fmt.Sprint(i))) // how it ended is said by RecvMsg
		} else if err = c.CloseSend(); err != nil {
			break
		}
		out := new(wrapperspb.StringValue)
		if err = c.RecvMsg(out); err == nil {
			o.text += out.Value
		}
	}
	if !errors.Is(err, io.EOF) {
		o.status = status.Convert(err)
	}
	if c != nil {
		o.header, _ = c.Header()
		o.trailer = c.Trailer()
	}
	o.took = time.Since(began)
	return o
}

// both runs a test for a unary call and for a stream of one message.
func both(t *testing.T, f func() *fake, opts []grpclimit.Option, test func(t *testing.T, f *fake, s *server, call func(context.Context) outcome)) {
	for _, kind := range []string{"unary", "stream"} {
		t.Run(kind, func(t *testing.T) {
			f := f()
			serve(t, f, opts, func(t *testing.T, s *server) {
				call := s.call
				if kind == "stream" {
					call = func(ctx context.Context) outcome { return s.talk(ctx, 1) }
				}
				test(t, f, s, call)
			})
		})
	}
}

// handlers makes both kinds of calls end as h says.
func (s *server) handlers(h func(ctx context.Context) error) {
	s.get = func(ctx context.Context, text string) (string, error) { return text, h(ctx) }
	s.chat = func(ss grpc.ServerStream) error { return h(ss.Context()) }
}

func acme(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-tenant", "acme")
}

// lines is a logger that keeps what it is told.
func lines() (*slog.Logger, func() []string) {
	var mu sync.Mutex
	var b strings.Builder
	w := writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return b.Write(p)
	})
	return slog.New(slog.NewTextHandler(w, nil)), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Collect(strings.Lines(b.String()))
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
