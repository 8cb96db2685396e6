package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

// slot is the home slot of a tenant.
func (s *sim) slot(tenant string) uint16 {
	s.t.Helper()
	home := s.any().view.Load().index.Home(&policy.Request{Tenant: tenant})
	if !home.OK {
		s.t.Fatal("no home")
	}
	return home.Slot
}

// wish has slots be wished for in a group, and all others where they are.
func (s *sim) wish(to uint32, slots ...uint16) error {
	x := s.any()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
	defer cancel()
	state := x.control.State()
	wish := control.Wish{Slots: slices.Clone(state.SlotGroup)}
	for _, g := range state.Groups {
		wish.Groups = append(wish.Groups, g.ID)
	}
	for _, m := range state.Moves {
		if m.Phase == control.Copying {
			wish.Slots[m.Slot] = m.To
		}
	}
	for _, slot := range slots {
		wish.Slots[slot] = to
	}
	return x.propose(ctx, control.Rebalance{Wish: wish})
}

// begin opens moves of slots to a group, and waits until they are open or done.
func (s *sim) begin(to uint32, slots ...uint16) {
	s.t.Helper()
	s.eventually(10*time.Second, func() error {
		state := s.any().control.State()
		start := control.StartMoves{}
		for _, slot := range slots {
			if m, open := state.Move(slot); !open && state.SlotGroup[slot] != to {
				start.Moves = append(start.Moves, control.Start{Slot: slot, To: to})
			} else if open && m.To != to {
				return fmt.Errorf("slot %d still moves: %+v", slot, m)
			}
		}
		if len(start.Moves) == 0 {
			return nil
		}
		if err := s.wish(to, slots...); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Second)
		defer cancel()
		return s.any().propose(ctx, start) // or the planner is first
	})
}

// ended waits until no move is open, and says which group has the slot.
func (s *sim) ended(slot uint16, within time.Duration) (group uint32) {
	s.t.Helper()
	s.eventually(within, func() error {
		for name, x := range s.nodes {
			if m := x.control.State().Moves; len(m) > 0 {
				return fmt.Errorf("%s: %+v", name, m)
			}
		}
		group = s.any().control.State().SlotGroup[slot]
		return nil
	})
	return group
}

// slow makes each way between two nodes take d, so that a move takes some time.
func (s *sim) slow(d time.Duration) {
	for _, a := range s.names {
		for _, b := range s.names {
			if a != b {
				s.net.Delay(a, b, d)
			}
		}
	}
}

// phase is how far the move of a slot is, as one node knows it.
func (s *sim) phase(slot uint16) string {
	x := s.any()
	m, open := x.control.State().Move(slot)
	if !open {
		return "over"
	}
	for _, x := range s.nodes {
		if r := x.view.Load().replicas[m.From]; r != nil {
			if i, ok := r.Slot(slot); ok {
				return fmt.Sprint(m.Phase, " ", i.State)
			}
		}
	}
	return m.Phase.String()
}

// elsewhere is a group other than the one that has a slot.
func (s *sim) elsewhere(slot uint16) uint32 {
	state := s.any().control.State()
	for _, g := range state.Groups {
		if g.ID != state.SlotGroup[slot] {
			return g.ID
		}
	}
	s.t.Fatal("one group only")
	return 0
}

func TestSlotMovesUnderLoadExactly(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		for round := range 5 {
			tenant := fmt.Sprint("t", round)
			slot := s.slot(tenant)
			y, slow := new(tally), atomic.Int64{}
			var wg sync.WaitGroup
			for i := range 300 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					begun := time.Now()
					y.take(c, 2*time.Second, client.Request{Tenant: tenant, Plan: "hundred"})
					if time.Since(begun) > 100*time.Millisecond {
						slow.Add(1)
					}
				})
			}
			for range 3 {
				time.Sleep(50 * time.Millisecond)
				to := s.elsewhere(slot)
				s.begin(to, slot)
				if got := s.ended(slot, 10*time.Second); got != to {
					t.Errorf("the slot is in group %d, want %d", got, to)
				}
			}
			wg.Wait()
			y.want(t, 100, 200)
			if n := slow.Load(); n > 3 {
				t.Errorf("%d of 300 takes waited for more than 100 ms", n)
			}
		}
		s.equalReplicas()
	})
}

func TestManySlotsMoveAtOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		want := make(map[uint16]int)
		for i := range 400 {
			tenant := fmt.Sprint("t", i)
			burst(c, 5, client.Request{Tenant: tenant, Plan: "year"}).want(t, 5, 0)
			want[s.slot(tenant)]++
		}
		before := s.any().control.State().SlotGroup
		var all []uint16
		for slot, g := range before {
			if g == 0 && len(all) < 48 {
				all = append(all, uint16(slot))
			}
		}
		begun := time.Now()
		for some := range slices.Chunk(all, control.MaxMoves) {
			s.begin(1, some...)
			s.ended(some[0], 20*time.Second)
		}
		t.Logf("%d slots moved in %v", len(all), time.Since(begun))
		for _, slot := range all {
			if g := s.any().control.State().SlotGroup[slot]; g != 1 {
				t.Fatalf("slot %d is in group %d", slot, g)
			}
		}
		for i := range 400 {
			burst(c, 10, client.Request{Tenant: fmt.Sprint("t", i), Plan: "year"}).want(t, 5, 5)
		}
		s.healthy(10 * time.Second)
		s.equalReplicas()
	})
}

func TestOneIDAcrossAMoveIsOneCharge(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		slot := s.slot("t")
		ask := func(node string) *pb.Decision {
			t.Helper()
			r := request("t", "year")
			r.RequestId = "pay-1"
			res := s.nodes[node].take(t.Context(), r)
			if res.GetDecision() == nil {
				t.Fatalf("%v", res)
			}
			return res.Decision
		}
		first := ask("a")
		for range 3 {
			s.begin(s.elsewhere(slot), slot)
			s.ended(slot, 10*time.Second)
			for _, name := range s.names {
				if d := ask(name); !d.Allowed || d.Remaining != first.Remaining || d.SlotTimeNs != first.SlotTimeNs {
					t.Errorf("%+v, before the move %+v", d, first)
				}
			}
		}
		r := request("t", "year")
		if d := s.nodes["b"].take(t.Context(), r).GetDecision(); d.GetRemaining() != 8 {
			t.Errorf("%v left after one charge and this one, want 8", d)
		}
	})
}

func TestRefillGoesOnAcrossMoves(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		slot := s.slot("t")
		r := client.Request{Tenant: "t", Plan: "burst"} // 10 a second
		burst(c, 120, r).want(t, 100, 20)
		begun := time.Now()
		for range 10 {
			s.begin(s.elsewhere(slot), slot)
			s.ended(slot, 10*time.Second)
			time.Sleep(300 * time.Millisecond)
		}
		want := int64(time.Since(begun) * 10 / time.Second)
		n := burst(c, 100, r).admitted.Load()
		if n > want || n < want-1 {
			t.Errorf("%d refilled in %v over ten moves, want %d", n, time.Since(begun), want)
		}
	})
}

func TestWindowsAndPermitsKeepTheirTimesAcrossMoves(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		add := func(id string, a bucket.Algorithm, amount uint64, window time.Duration) {
			s.set.Policies = append(s.set.Policies, &policy.Policy{
				ID: id, Match: policy.On("plan", id), Scope: []string{"tenant"},
				Limit: bucket.Limit{Algorithm: a, Amount: amount, Window: int64(window)},
			})
		}
		add("fixed", bucket.FixedWindow, 5, 20*time.Second)
		add("log", bucket.SlidingLog, 5, 20*time.Second)
		add("permits", bucket.Concurrency, 2, 20*time.Second)
		s.boot()
		slot := s.slot("t")
		take := func(plan string) *pb.Decision {
			t.Helper()
			res := s.nodes["a"].take(t.Context(), request("t", plan))
			if res.GetDecision() == nil {
				t.Fatalf("%s: %v", plan, res)
			}
			return res.Decision
		}
		frees := make(map[string]time.Time) // when each is free again, as told before the moves
		for _, plan := range []string{"fixed", "log", "permits"} {
			d := take(plan)
			for d.Allowed {
				d = take(plan)
			}
			frees[plan] = time.Now().Add(time.Duration(d.RetryAfterNs))
		}
		for range 4 {
			s.begin(s.elsewhere(slot), slot)
			s.ended(slot, 10*time.Second)
			for plan, at := range frees {
				d := take(plan)
				if off := time.Until(at) - time.Duration(d.RetryAfterNs); d.Allowed || off < -50*time.Millisecond || off > time.Millisecond {
					t.Errorf("%s: allowed %v, free in %v, %v off", plan, d.Allowed, time.Duration(d.RetryAfterNs), off)
				}
			}
		}
	})
}

func TestPermitIsReleasedAfterAMove(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.set.Policies = append(s.set.Policies, &policy.Policy{
			ID: "permits", Match: policy.On("plan", "permits"), Scope: []string{"tenant"},
			Limit: bucket.Limit{Algorithm: bucket.Concurrency, Amount: 1, Window: int64(time.Minute)},
		})
		s.boot()
		slot := s.slot("t")
		d := s.any().take(t.Context(), request("t", "permits")).GetDecision()
		if !d.GetAllowed() || d.PermitId == "" {
			t.Fatalf("%v", d)
		}
		token := d.FencingToken
		s.begin(s.elsewhere(slot), slot)
		s.ended(slot, 10*time.Second)
		r, err := s.any().Release(t.Context(), &pb.PermitRequest{PermitId: d.PermitId})
		if err != nil || !r.Held {
			t.Fatalf("%v, %v", r, err)
		}
		d = s.any().take(t.Context(), request("t", "permits")).GetDecision()
		if !d.GetAllowed() || d.FencingToken <= token {
			t.Errorf("allowed %v with token %d after %d", d.GetAllowed(), d.FencingToken, token)
		}
	})
}

// TestLeaderKilledWhileItsSlotMoves kills the leader of either group at a random
// moment of a move, so that over the rounds every phase is met.
func TestLeaderKilledWhileItsSlotMoves(t *testing.T) {
	for side := range 2 {
		t.Run([]string{"from", "to"}[side], func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, s *sim) {
				s.boot()
				s.slow(3 * time.Millisecond)
				c := s.dial()
				defer c.Close()
				met := make(map[string]int)
				for round := range 20 {
					tenant := fmt.Sprint("t", round)
					slot := s.slot(tenant)
					to := s.elsewhere(slot)
					group := []uint32{s.any().control.State().SlotGroup[slot], to}[side]
					y := new(tally)
					var wg sync.WaitGroup
					for i := range 300 {
						wg.Go(func() {
							time.Sleep(time.Duration(i) * time.Millisecond)
							y.take(c, 5*time.Second, client.Request{Tenant: tenant, Plan: "hundred"})
						})
					}
					time.Sleep(50 * time.Millisecond)
					s.begin(to, slot)
					time.Sleep(rand.N(60 * time.Millisecond))
					met[s.phase(slot)]++
					victim, ok := s.any().table.leader(group)
					if !ok || s.nodes[victim.node] == nil {
						t.Fatal("no leader")
					}
					s.kill(victim.node)
					wg.Wait()
					y.want(t, 100, 200)
					s.ended(slot, 30*time.Second)
					burst(c, 5, client.Request{Tenant: tenant, Plan: "hundred"}).want(t, 0, 5)
					s.start(victim.node)
					s.healthy(30 * time.Second)
				}
				t.Logf("killed in phases %v", met)
				s.equalReplicas()
			})
		})
	}
}

func TestCutLinkCancelsOrDelaysAMove(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		s.slow(3 * time.Millisecond)
		c := s.dial()
		defer c.Close()
		time.Sleep(15 * time.Second) // owners lead
		for round := range 6 {
			tenant := fmt.Sprint("t", round)
			slot := s.slot(tenant)
			to := s.elsewhere(slot)
			from, _ := s.any().table.leader(s.any().control.State().SlotGroup[slot])
			target, _ := s.any().table.leader(to)
			y := new(tally)
			var wg sync.WaitGroup
			for i := range 200 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 5 * time.Millisecond)
					y.take(c, 5*time.Second, client.Request{Tenant: tenant, Plan: "hundred"})
				})
			}
			time.Sleep(50 * time.Millisecond)
			s.begin(to, slot)
			time.Sleep(rand.N(20 * time.Millisecond))
			s.net.Cut(from.node, target.node)
			s.net.Cut(target.node, from.node)
			time.Sleep(time.Second)
			s.net.HealAll()
			wg.Wait()
			y.want(t, 100, 100)
			s.ended(slot, time.Minute)
			s.healthy(time.Minute)
			burst(c, 5, client.Request{Tenant: tenant, Plan: "hundred"}).want(t, 0, 5)
		}
	})
}

func TestLossyLinksMoveASlotOnce(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		c := s.dial()
		defer c.Close()
		s.slow(3 * time.Millisecond)
		for _, a := range s.names {
			for _, b := range s.names {
				if a != b {
					s.net.Drop(a, b, 0.05)
				}
			}
		}
		for round := range 5 {
			tenant := fmt.Sprint("t", round)
			slot := s.slot(tenant)
			burst(c, 40, client.Request{Tenant: tenant, Plan: "hundred"}).want(t, 40, 0)
			s.begin(s.elsewhere(slot), slot)
			burst(c, 100, client.Request{Tenant: tenant, Plan: "hundred"}).want(t, 60, 40)
			s.ended(slot, time.Minute)
			burst(c, 5, client.Request{Tenant: tenant, Plan: "hundred"}).want(t, 0, 5)
		}
	})
}

func TestCancelledMoveLeavesTheSlot(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		s.slow(3 * time.Millisecond)
		c := s.dial()
		defer c.Close()
		slot := s.slot("t")
		from := s.any().control.State().SlotGroup[slot]
		burst(c, 4, client.Request{Tenant: "t", Plan: "year"}).want(t, 4, 0)
		cancelled := 0
		for range 20 {
			s.begin(s.elsewhere(slot), slot)
			time.Sleep(rand.N(50 * time.Millisecond))
			s.eventually(time.Second, func() error { return s.wish(from, slot) }) // the planner cancels it, or moves it back
			s.eventually(10*time.Second, func() error {
				state := s.any().control.State()
				if m, open := state.Move(slot); open {
					if m.Phase == control.Cancelled {
						cancelled++
					}
					return fmt.Errorf("%+v", m)
				}
				if state.SlotGroup[slot] != from {
					return errors.New("not back")
				}
				return nil
			})
		}
		t.Logf("%d of 20 moves seen cancelled", cancelled)
		burst(c, 10, client.Request{Tenant: "t", Plan: "year"}).want(t, 6, 4)
	})
}

// TestPartsOfARequestMoveApart: a request over two slots is charged once for each,
// also when its copies come while the slots share a group, and when they do not.
func TestPartsOfARequestMoveApart(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.set.Policies = append(s.set.Policies, &policy.Policy{
			ID: "user", Match: policy.On("plan", "year"), Scope: []string{"user"},
			Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 10, Burst: 10, Window: int64(8760 * time.Hour)},
		})
		s.boot()
		ask := func(id string) (*pb.Decision, error) {
			r := request("t", "year")
			r.Subject.Principals = []*pb.Principal{{Type: "user", Id: "u"}}
			r.RequestId = id
			res := s.any().take(t.Context(), r)
			if res.GetDecision() == nil {
				return nil, errors.New(res.String())
			}
			return res.Decision, nil
		}
		left := func(d *pb.Decision) (out [2]uint64) {
			for i, l := range d.Limits {
				out[i] = l.Remaining
			}
			return out
		}
		home := s.slot("t")
		var user uint16
		v := s.any().view.Load()
		for _, h := range v.index.Match(&policy.Request{
			Tenant: "t", Plan: "year", Principals: []policy.Principal{{Type: "user", ID: "u"}}, Cost: 1,
		}, nil) {
			if h.Policy.ID == "user" {
				user = h.Slot
			}
		}
		if home == user {
			t.Fatal("one slot")
		}
		groups := []uint32{0, 1, 2}
		for i := range uint64(9) {
			to := [2]uint32{groups[i%3], groups[i/3]}
			for k, slot := range []uint16{home, user} {
				s.begin(to[k], slot)
				s.ended(slot, 10*time.Second)
			}
			id := fmt.Sprint("id", i)
			d, err := ask(id)
			if err != nil || !d.Allowed || left(d) != [2]uint64{9 - i, 9 - i} {
				t.Fatalf("%s in groups %v: %v, %v", id, to, d, err)
			}
			for _, again := range [][2]uint32{{1, 1}, {1, 2}, {0, 1}} {
				for k, slot := range []uint16{home, user} {
					s.begin(again[k], slot)
					s.ended(slot, 10*time.Second)
				}
				if e, err := ask(id); err != nil || !e.Allowed || left(e) != left(d) {
					t.Fatalf("%s first in groups %v, now in %v: %v, %v; before %v", id, to, again, e, err, d)
				}
			}
		}
	})
}
