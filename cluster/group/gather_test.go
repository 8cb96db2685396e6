package group

import (
	"errors"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

func TestSealDropsWhatHasExpired(t *testing.T) {
	g := newGather()
	if _, _, err := g.add([]Request{ask(1, oneOff(1), 1, 0, 0)}, []bool{false}, time.Time{}); !errors.Is(err, errClosed) {
		t.Errorf("a closed gather took a call in: %v", err)
	}
	g.admit()
	now := time.Now()
	add := func(n int, deadline time.Time) int {
		t.Helper()
		var reqs []Request
		for i := range n {
			reqs = append(reqs, ask(uint64(i), oneOff(1), 1, 0, 0))
		}
		_, i, err := g.add(reqs, make([]bool, n), deadline)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	add(2, time.Time{})
	late := add(3, now)
	left := add(1, time.Time{})
	last := add(4, now.Add(time.Second))
	b := g.take()
	if g.leave(b, left) != queued {
		t.Error("leaving a batch that is not proposed is not free")
	}
	n, dropped := g.seal(b, now)
	if n != 6 || dropped != 1 || b.builder.Len() != 6 || b.calls[last].first != 2 || !b.calls[late].dropped {
		t.Errorf("%d requests and %d dropped, calls %+v", n, dropped, b.calls)
	}
	if g.leave(b, last) != proposed {
		t.Error("leaving a proposed batch is free")
	}
	g.unseal(b)
	if n, _ := g.seal(b, now); n != 2 {
		t.Errorf("%d requests at the second attempt, want 2 without the call that left", n)
	}
	g.unseal(b)
	g.finish(b, fault.NoLeader)
	g.finish(b, nil)
	<-b.done
	if n, _ := g.seal(b, now); n != 0 {
		t.Errorf("a finished batch still has %d requests to propose", n)
	}
	if !errors.Is(b.err, fault.NoLeader) || g.leave(b, 0) != finished {
		t.Errorf("a batch finished twice: %v", b.err)
	}
	if err := b.collect(late, nil, new(Outcome)); !errors.Is(err, fault.Deadline) {
		t.Errorf("the dropped call got %v", err)
	}
}

func TestLargeCallDoesNotMakeABatchFullForSmallOnes(t *testing.T) {
	g := newGather()
	g.admit()
	call := func(n int) error {
		reqs := make([]Request, n)
		for i := range reqs {
			reqs[i] = ask(uint64(i), oneOff(1), 1, 0, 0)
		}
		_, _, err := g.add(reqs, make([]bool, n), time.Time{})
		return err
	}
	for _, c := range []struct {
		n    int
		want error
	}{{1, nil}, {bucket.MaxEntryRequests, fault.Busy}, {bucket.MaxEntryRequests - 2, nil}, {2, fault.Busy}, {1, fault.Busy}} {
		if err := call(c.n); !errors.Is(err, c.want) {
			t.Errorf("a call of %d: %v, want %v", c.n, err, c.want)
		}
	}
}

// TestTooBigIsToldAlsoWhenBusy: a call that no entry can carry must not be sent
// away as if it could wait for the next one.
func TestTooBigIsToldAlsoWhenBusy(t *testing.T) {
	g := newGather()
	g.admit()
	call := func(n, takes int) error {
		reqs := make([]Request, n)
		for i := range reqs {
			reqs[i] = ask(uint64(i), oneOff(1), 1, 0, 0)
			for range takes - 1 {
				reqs[i].Takes = append(reqs[i].Takes, reqs[i].Takes[0])
			}
		}
		_, _, err := g.add(reqs, make([]bool, n), time.Time{})
		return err
	}
	const many = bucket.MaxRequestTakes
	heavy := bucket.MaxEntryBytes / many / 16
	for i, c := range []struct {
		n, takes int
		want     error
	}{
		{heavy, many, ErrTooBig},
		{bucket.MaxEntryRequests + 1, 1, ErrTooBig}, // alone
		{1, 1, nil},
		{heavy, many, ErrTooBig},
		{bucket.MaxEntryRequests + 1, 1, ErrTooBig}, // beside another
		{heavy / 2, many, nil},
		{1, 1, nil},
	} {
		if err := call(c.n, c.takes); !errors.Is(err, c.want) {
			t.Errorf("call %d, of %d: %v, want %v", i, c.n, err, c.want)
		}
	}
	if !errors.Is(ErrTooBig, fault.InvalidArgument) {
		t.Error("the kind is lost")
	}
}

func TestFinalShutIsFinal(t *testing.T) {
	g := newGather()
	add := func() error {
		_, _, err := g.add([]Request{ask(1, oneOff(1), 1, 0, 0)}, []bool{false}, time.Time{})
		return err
	}
	g.admit()
	g.shut(fault.NoLeader, false)
	if err := add(); !errors.Is(err, errClosed) {
		t.Errorf("a closed gather: %v", err)
	}
	g.admit()
	if err := add(); err != nil {
		t.Errorf("opened again: %v", err)
	}
	g.shut(errStopped, true)
	g.shut(fault.NoLeader, false) // leadership ends afterwards
	g.admit()                     // or is gained: the notice came late
	if err := add(); !errors.Is(err, errClosed) {
		t.Errorf("opened again after the final shut: %v", err)
	}
}
