package client

import (
	"context"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// A node is one connection and one stream, made anew for as long as the client
// lives or until the node has left the cluster. It has two goroutines: run,
// which opens the stream and reads from it, and sender.
type node struct {
	client  *Client
	addr    string
	seed    bool                                       // named by the user: never retired; guarded by Client.mu
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}] // used by run alone
	refuses bool                                       // connections, when last tried; guarded by Client.mu
	missed  bool                                       // it was lost, and the log said so; guarded by Client.mu
	conn    *grpc.ClientConn
	ctx     context.Context // done when retired or closed
	cancel  context.CancelFunc
	kick    chan struct{} // tells sender to look; capacity 1

	sending sync.Mutex // held while sending; taken before mu, or tried under it
	out     wire.Raw   // guarded by sending

	mu         sync.Mutex // guards what follows, and the lanes; held for appends only
	up         bool       // the stream is open and the node has answered on it
	stream     grpc.ClientStream
	cut        context.CancelFunc // ends the stream
	lastID     uint64
	flight     map[uint64]*message
	unanswered int // bytes in flight
	lanes      []*lane
	free       []*message
}

// Sizes and times of a connection.
const (
	streamWindow     = 4 << 20
	connectionWindow = 8 << 20
	maxResponse      = 8 << 20
	connectTimeout   = time.Second
)

func (n *node) dialOptions() []grpc.DialOption {
	c := n.client
	return []grpc.DialOption{
		grpc.WithContextDialer(n.dialer(c.options.dial)),
		grpc.WithTransportCredentials(c.options.creds),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.Codec{}), grpc.MaxCallRecvMsgSize(maxResponse)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: breakerOpen},
			MinConnectTimeout: connectTimeout,
		}),
		// grpc allows no shorter time; the timeout is also TCP_USER_TIMEOUT, which
		// ends a connection whose bytes nobody acknowledges.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 2 * time.Second, PermitWithoutStream: true}),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connectionWindow),
		grpc.WithDisableServiceConfig(),
	}
}

// newNode starts a node. Client.mu is held.
func (c *Client) newNode(addr string, seed bool) (*node, error) {
	n := &node{
		client: c, addr: addr, seed: seed, breaker: newBreaker(addr),
		kick: make(chan struct{}, 1), flight: map[uint64]*message{},
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, n.dialOptions()...)
	if err != nil {
		return nil, err
	}
	n.conn = conn
	n.ctx, n.cancel = context.WithCancel(c.ctx)
	c.running.Go(n.run)
	c.running.Go(n.sender)
	return n, nil
}

// run keeps a stream open.
func (n *node) run() {
	defer n.conn.Close()
	var wait pause
	for n.ctx.Err() == nil {
		done, err := n.breaker.Allow()
		if err != nil {
			sleep(n.ctx, time.Duration(jitter(int64(breakerOpen)/5))) // until its moment is over
			continue
		}
		began := n.client.now()
		ctx, cancel := context.WithCancel(n.ctx)
		err = n.converse(ctx, cancel)
		cancel()
		steady := n.client.now()-began > int64(steadyTime)
		if steady {
			done(nil)
		} else {
			done(err)
		}
		n.client.nodeLost(n, err)
		if steady || wait.length == 0 {
			wait.begin(n.client.now())
		} else {
			wait.next(n.client.now())
		}
		sleep(n.ctx, time.Duration(wait.until-n.client.now()))
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// converse opens the stream and reads from it until it breaks.
func (n *node) converse(ctx context.Context, cancel context.CancelFunc) error {
	stream, err := n.conn.NewStream(ctx, &pb.Limiter_ServiceDesc.Streams[0], pb.Limiter_Stream_FullMethodName)
	if err != nil {
		return err
	}
	in := wire.Raw{Limit: maxResponse}
	var answers wire.Answers
	for first := true; ; first = false {
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		if err := in.Check(); err != nil {
			return err
		}
		if err := answers.Parse(in.B); err != nil {
			return err
		}
		if answers.Routing != nil {
			n.client.learn(answers.Routing, n)
		}
		if first {
			n.rise(stream, cancel)
		}
		if answers.ID != 0 {
			if err := n.answered(&answers); err != nil {
				return err
			}
		}
	}
}

// rise makes the node usable.
func (n *node) rise(stream grpc.ClientStream, cut context.CancelFunc) {
	n.mu.Lock()
	n.stream, n.up, n.cut = stream, true, cut
	n.mu.Unlock()
	n.client.nodeFound(n)
}

// fall takes everything that was on its way here.
func (n *node) fall() (wasUp bool, flight []*message, queued []*call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wasUp = n.up
	n.stream, n.up, n.unanswered = nil, false, 0
	for id, m := range n.flight {
		flight = append(flight, m)
		delete(n.flight, id)
	}
	n.client.flying.Add(-int64(len(flight)))
	for _, l := range n.lanes {
		queued = append(queued, l.queue...)
		l.queue, l.flying, l.last = nil, 0, 0
	}
	return wasUp, flight, queued
}

func (n *node) isUp() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up
}

// lane returns the lane of a group.
func (n *node) lane(g *group) *lane {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lanes {
		if l.group == g {
			return l
		}
	}
	l := &lane{node: n, group: g}
	n.lanes = append(n.lanes, l)
	return l
}
