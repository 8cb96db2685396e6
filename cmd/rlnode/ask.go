package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// purpose says whether a call may be made twice.
type purpose int

const (
	reading  purpose = iota
	judging          // reading, and the node reads a file first, perhaps a large one
	changing         // stop at the first node that may have done it
)

// How long one node may take, and how large an answer may be: 100,000 policies
// are some tens of MiB.
const (
	connectTimeout = 3 * time.Second
	readTimeout    = 10 * time.Second
	changeTimeout  = time.Minute
	maxAnswer      = 256 << 20
)

// How long a change is tried again while nodes answer that they cannot make it now,
// as between two control leaders, and how often.
const (
	changePatience = 10 * time.Second
	changePause    = 300 * time.Millisecond
)

// ask calls the first of several nodes that answers. A change that all who answer
// refuse for the moment is tried again for changePatience.
func ask[R any](ctx context.Context, addrs nodes, why purpose, call func(context.Context, *grpc.ClientConn) (R, error)) (R, error) {
	for began := time.Now(); ; {
		r, err := askEach(ctx, addrs, why, call)
		var none *noneError
		if !errors.As(err, &none) || !none.met || why != changing || time.Since(began) > changePatience {
			return r, err
		}
		select {
		case <-time.After(changePause):
		case <-ctx.Done():
			return r, err
		}
	}
}

// noneError is what each of the nodes said that did not do it.
type noneError struct {
	why  purpose
	met  bool // one of them answered
	said []string
}

func (e *noneError) Error() string {
	text := "no node answered: "
	switch {
	case e.met && e.why == changing:
		text = "nothing was changed, try again: "
	case e.met:
		text = "no node can answer this now: "
	}
	return text + strings.Join(e.said, "; ")
}

// askEach asks one node after the other.
func askEach[R any](ctx context.Context, addrs nodes, why purpose, call func(context.Context, *grpc.ClientConn) (R, error)) (R, error) {
	var none R
	if len(addrs.addrs) == 0 {
		return none, usageError{errors.New("--addr names no node: want HOST:PORT and more after commas")}
	}
	timeout := readTimeout
	if why != reading {
		timeout = changeTimeout
	}
	failed := &noneError{why: why}
	for _, addr := range addrs.addrs {
		conn, err := addrs.open(addr)
		if err != nil {
			return none, err
		}
		r, err := askOne(ctx, conn, timeout, call)
		_ = conn.Close()
		if err == nil {
			return r, nil
		}
		if isFinal(err, why) {
			return none, err
		}
		failed.met = failed.met || !errors.Is(err, errConnect)
		failed.said = append(failed.said, fmt.Sprintf("%s: %v", addr, err))
	}
	return none, failed
}

func askOne[R any](ctx context.Context, conn *link, timeout time.Duration, call func(context.Context, *grpc.ClientConn) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := conn.connect(ctx); err != nil {
		var none R
		return none, err
	}
	r, err := call(ctx, conn.ClientConn)
	return r, fault.FromStatus(err)
}

// isFinal says whether no other node can answer better, or must not be asked.
func isFinal(err error, why purpose) bool {
	elsewhere := []error{fault.NotLeader, fault.NoLeader, fault.Busy, fault.NotReady, fault.Unavailable, fault.NotHeld}
	if why != changing {
		elsewhere = append(elsewhere, fault.OutcomeUnknown, fault.Deadline, fault.Internal)
	}
	return !slices.ContainsFunc(elsewhere, func(kind error) bool { return errors.Is(err, kind) })
}

// author is who runs this command, for the audit log.
func author() *pb.Author {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return &pb.Author{Who: name}
}
