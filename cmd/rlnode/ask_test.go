package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
)

func TestAChangeIsTriedAgainWhileThereIsNoLeader(t *testing.T) {
	addr := devCluster(t, "--nodes", "1")
	for _, c := range []struct {
		name    string
		why     purpose
		addrs   string
		answers []error // then nil
		calls   int
		want    string // of the error
	}{
		{"no leader for a moment", changing, addr, []error{fault.New(fault.NoLeader, "electing"), fault.New(fault.NotReady, "new")}, 3, ""},
		{"refused", changing, addr, []error{fault.New(fault.Conflict, "it runs")}, 1, "conflict: it runs"},
		{"perhaps done", changing, addr, []error{fault.New(fault.OutcomeUnknown, "lost")}, 1, "outcome unknown: lost"},
		{"a look", reading, addr, []error{fault.New(fault.NotReady, "new")}, 1, "no node can answer this now: " + addr + ": not ready: new"},
		{"nobody there", changing, "127.0.0.1:1", nil, 0, "no node answered: 127.0.0.1:1: unavailable: cannot connect"},
	} {
		calls := 0
		_, err := ask(t.Context(), nodes{addrs: []string{c.addrs}}, c.why, func(context.Context, *grpc.ClientConn) (int, error) {
			calls++
			if calls > len(c.answers) {
				return 0, nil
			}
			return 0, c.answers[calls-1]
		})
		if calls != c.calls || (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %d calls, %v; want %d, %q", c.name, calls, err, c.calls, c.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := ask(ctx, nodes{addrs: []string{addr}}, changing, func(context.Context, *grpc.ClientConn) (int, error) {
		return 0, fault.New(fault.NoLeader, "electing")
	})
	if err == nil || !strings.HasPrefix(err.Error(), "nothing was changed, try again: "+addr+": no leader") || errors.Is(err, fault.NoLeader) {
		t.Errorf("no leader for long: %v", err)
	}
}

func TestNoAnswerIsToldInWords(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--tenant", "t"},
		{"refund", "--tenant", "t", "--request-id", "r"},
		{"permit", "release", "p", "--tenant", "t"},
	} {
		code, _, errs := command(t, append(args, "--addr", "127.0.0.1:1", "--timeout", "200ms")...)
		if code != exitError || !strings.HasPrefix(errs, "rlnode: no answer within 200ms") || !strings.HasSuffix(errs, ": see rlnode status\n") ||
			strings.Contains(errs, "context") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: code %d, %q", args, code, errs)
		}
	}
}

func TestRemoveAndDrainSayWhatTheyMet(t *testing.T) {
	addrs := devCluster(t, "--nodes", "3")
	last := strings.Split(addrs, ",")[0]
	code, _, errs := command(t, "drain", "--addr", addrs, "node3")
	if code != 0 || !strings.Contains(errs, "warning: 2 nodes are left when it is done: each group will have 1 replica instead of 3") {
		t.Errorf("drain to two nodes: code %d, %s", code, errs)
	}
	if code, out, errs := command(t, "remove", "--addr", last, "node3"); code != 0 || out != "node3 is removed already\n" {
		t.Errorf("removed after it has left: code %d, %s%s", code, out, errs)
	}
	if code, _, errs := command(t, "remove", "--addr", last, "nobody"); code != exitError || !strings.Contains(errs, `no node is named "nobody"`) {
		t.Errorf("an unknown node: code %d, %s", code, errs)
	}
}
