package transport_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport"
)

// Whoever asks and never takes the answers holds the memory of both. On real
// sockets: workers wait for each other on a mutex, which stops a bubble's time.
func TestCallerThatTakesNoAnswersIsCutOff(t *testing.T) {
	s := transport.NewServer(newBackend("a:1"), transport.ServerOptions{
		Logger: slog.New(slog.DiscardHandler), SlowReader: 200 * time.Millisecond,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	defer func() { s.Stop(); <-done }()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := pb.NewLimiterClient(conn).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m := &pb.StreamRequest{Requests: requests(1000)}
	for m.Id = 1; err == nil && ctx.Err() == nil; m.Id++ {
		err = g.Send(m)
	}
	if ctx.Err() != nil {
		t.Error("a caller that takes nothing was never cut off")
	}
}
