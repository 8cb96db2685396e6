package intake

import (
	"slices"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// forever is a caller who waits as long as it takes.
const forever = int64(time.Hour)

func TestWhoeverIsAloneIsLetIn(t *testing.T) {
	q := New(1000)
	if n := q.Enter(0, "a", 5000, forever); n != 5000 {
		t.Errorf("%d of 5000 entered", n)
	}
}

func TestAMessageIsLetInWholeOrNotAtAll(t *testing.T) {
	q := New(1000)
	for i, want := range []int{600, 600, 0} { // below the limit, then beyond it by one message
		if n := q.Enter(0, "a", 600, forever); n != want {
			t.Errorf("message %d: %d entered, want %d", i, n, want)
		}
	}
	if got := (State{Waiting: 1200, Limit: 1000, Refused: 600}); q.State() != got {
		t.Errorf("%+v, want %+v", q.State(), got)
	}
	q.Leave("a", 600)
	if n := q.Enter(0, "a", 600, forever); n != 600 {
		t.Errorf("after half has left %d entered", n)
	}
}

// TestAQuietSourceIsNotStarved: a flood holds all that a group has.
func TestAQuietSourceIsNotStarved(t *testing.T) {
	q := New(1000)
	q.Enter(0, "flood", 1000, forever)
	if n := q.Enter(0, "flood", 1, forever); n != 0 {
		t.Errorf("the flood got %d more", n)
	}
	for i := range 500 { // half of the limit, as there are two
		if n := q.Enter(0, "quiet", 1, forever); n != 1 {
			t.Fatalf("request %d of another was refused", i)
		}
	}
	if n := q.Enter(0, "quiet", 1, forever); n != 0 {
		t.Errorf("another got %d beyond its share", n)
	}
}

// TestALargeMessageGetsItsShareInTheEnd: it never fits, as others fill what is left.
func TestALargeMessageGetsItsShareInTheEnd(t *testing.T) {
	q := New(1000)
	q.Enter(0, "flood", 1000, forever)
	for now := range int64(1000) {
		if n := q.Enter(now*ms, "large", 800, forever); n != 0 {
			t.Fatalf("%d entered after %d ms", n, now)
		}
	}
	if n := q.Enter(1000*ms, "large", 800, forever); n != 500 {
		t.Errorf("%d entered after a second, want its share", n)
	}
}

func TestSourcesThatAreGoneDoNotCount(t *testing.T) {
	q := New(1000)
	for _, by := range []string{"b", "c", "d"} {
		q.Enter(0, by, 1, forever)
		q.Leave(by, 1)
	}
	q.Enter(500*ms, "flood", 1000, forever)
	if n := q.Enter(999*ms, "quiet", 201, forever); n != 0 { // a fifth is 200
		t.Errorf("%d of 201 entered", n)
	}
	if n := q.Enter(1600*ms, "quiet", 201, forever); n != 201 { // half is 500
		t.Errorf("%d of 201 entered when three had gone", n)
	}
}

// server answers, in order, what waits in a queue, so many a second.
type server struct {
	q       *Queue
	rate    float64
	entered []int64 // when each that waits did
	due     float64
	waits   []int64 // of those answered
}

// ask lets requests come for some time, each ms so many, in messages of one, and
// answers what can be.
func (s *server) ask(from, to int64, each int) (refused int) {
	for now := from; now < to; now += ms {
		for range each {
			if s.q.Enter(now, "a", 1, forever) == 1 {
				s.entered = append(s.entered, now)
			} else {
				refused++
			}
		}
		for s.due += s.rate / 1000; s.due >= 1 && len(s.entered) > 0; s.due-- {
			wait := now + ms - s.entered[0]
			s.entered, s.waits = s.entered[1:], append(s.waits, wait)
			s.q.Answered(now, 1, wait)
			s.q.Leave("a", 1)
		}
		s.due = min(s.due, 1)
	}
	return refused
}

func TestThreeTimesTooMuchWaitsNoLongerThanPatience(t *testing.T) {
	s := &server{q: New(1 << 20), rate: 50_000}
	s.ask(0, 1000*ms, 150)
	s.waits = nil
	refused := s.ask(1000*ms, 3000*ms, 150)
	if answered := len(s.waits); answered < 99_000 {
		t.Errorf("%d were answered in two seconds, want all that can be", answered)
	}
	if refused < 190_000 {
		t.Errorf("%d were refused, want two thirds of 300,000", refused)
	}
	for i, wait := range s.waits {
		if wait > int64(Patience)*3/2 {
			t.Fatalf("request %d waited for %v", i, time.Duration(wait))
		}
	}
}

// TestAnswersThatComeAllAtOnceAreARateToo: an entry of many requests every 40 ms.
func TestAnswersThatComeAllAtOnceAreARateToo(t *testing.T) {
	q := New(1 << 20)
	var entered, flying []int64
	for now := int64(0); now < 5000*ms; now += ms {
		for range 150 {
			if q.Enter(now, "a", 1, forever) == 1 {
				entered = append(entered, now)
			}
		}
		if now/ms%40 != 39 {
			continue
		}
		for _, at := range flying {
			q.Answered(now, 1, now-at)
			q.Leave("a", 1)
		}
		n := min(len(entered), 2000) // 50,000 a second
		flying, entered = entered[:n], entered[n:]
		if l := q.State().Limit; now > 1500*ms && (l < 3500 || l > 10_000) {
			t.Fatalf("limit %d after %v, want about a tenth of 50,000", l, time.Duration(now))
		}
	}
}

func TestTheLimitFollowsTheRate(t *testing.T) {
	s := &server{q: New(1 << 20), rate: 100_000}
	s.ask(0, 2000*ms, 200)
	if l := s.q.State().Limit; l < 8000 || l > 12_000 {
		t.Errorf("limit %d at 100,000 a second, want a tenth", l)
	}
	s.rate = 30_000
	s.ask(2000*ms, 4000*ms, 200)
	if l := s.q.State().Limit; l < 2500 || l > 3600 {
		t.Errorf("limit %d at 30,000 a second, want a tenth", l)
	}
	s.rate = 100_000
	s.ask(4000*ms, 6000*ms, 200)
	if l := s.q.State().Limit; l < 8000 || l > 12_000 {
		t.Errorf("limit %d at 100,000 a second again, want a tenth", l)
	}
	s.ask(6000*ms, 9000*ms, 10)
	if l := s.q.State().Limit; l < Start || l > Start+20 {
		t.Errorf("limit %d when nothing was refused for seconds, want what it began with", l)
	}
}

// TestNothingIsRefusedThatIsAnsweredSoon: one slow answer among quick ones is no queue.
func TestNothingIsRefusedThatIsAnsweredSoon(t *testing.T) {
	q := New(1 << 20)
	for now := int64(0); now < 2000*ms; now += ms {
		if n := q.Enter(now, "a", 100, forever); n != 100 {
			t.Fatalf("%d of 100 entered after %v", n, time.Duration(now))
		}
		took := 5 * ms
		if now/ms%10 == 0 {
			took = 400 * ms
		}
		q.Answered(now, 100, took)
		q.Leave("a", 100)
	}
}

// TestSlowCommitsAloneRefuseNothing: replicas may be far apart, and then every answer
// is late; as many as a message holds still wait.
func TestSlowCommitsAloneRefuseNothing(t *testing.T) {
	q := New(1 << 20)
	for now := int64(0); now < 10_000*ms; now += 300 * ms {
		if n := q.Enter(now, "a", Least-1, forever) + q.Enter(now, "a", 1, forever); n != Least {
			t.Fatalf("%d entered after %v", n, time.Duration(now))
		}
		q.Answered(now+300*ms, Least, 300*ms)
		q.Leave("a", Least)
	}
}

func TestWhoCannotWaitIsRefusedInAnOverload(t *testing.T) {
	q := New(1 << 20)
	q.Enter(0, "a", 1, forever)
	if n := q.Enter(0, "a", 1, ms); n != 1 {
		t.Error("refused without an overload")
	}
	q.Answered(200*ms, 1, 150*ms)
	q.pass(300 * ms)
	for left, want := range map[int64]int{149 * ms: 0, 151 * ms: 1} {
		if n := q.Enter(300*ms, "a", 1, left); n != want {
			t.Errorf("%d entered who wait for %v, where the quickest answer took 150 ms", n, time.Duration(left))
		}
	}
}

func TestAFullEntryLowersTheLimit(t *testing.T) {
	q := New(1 << 20)
	q.Enter(0, "a", 1500, forever)
	q.Enter(0, "a", 400, forever)
	q.Full(400)
	if s := q.State(); s.Limit != 1500 || s.Refused != 400 {
		t.Errorf("%+v", s)
	}
}

func TestAStandstillTeachesNothing(t *testing.T) {
	q := New(4000)
	q.Enter(0, "a", Start, forever)
	for now := int64(0); now < 5000*ms; now += 10 * ms {
		q.Enter(now, "a", 1, forever)
	}
	if l := q.State().Limit; l != Start {
		t.Errorf("limit %d", l)
	}
}

// TestAnOverloadIsSeenSoon: as many as may wait at first come at once.
func TestAnOverloadIsSeenSoon(t *testing.T) {
	for _, rate := range []float64{3000, 10_000, 50_000} {
		s := &server{q: New(16_384), rate: rate}
		s.ask(0, 1000*ms, int(rate/2000))
		s.waits = nil
		s.ask(1000*ms, 3000*ms, int(3*rate/1000))
		if longest := slices.Max(s.waits); longest > 3*int64(Patience) {
			t.Errorf("at %.0f a second somebody waited %v", rate, time.Duration(longest))
		}
		late := s.waits[len(s.waits)/4:]
		if longest := slices.Max(late); longest > 3*int64(Patience)/2 {
			t.Errorf("at %.0f a second somebody waited %v, when it was known", rate, time.Duration(longest))
		}
	}
}

// TestAnOverloadEndsWithoutCommits: a flood of what is denied from memory goes on after
// one of what was committed.
func TestAnOverloadEndsWithoutCommits(t *testing.T) {
	s := &server{q: New(16_384), rate: 3000}
	s.ask(0, 2000*ms, 9)
	q := s.q
	q.Leave("a", len(s.entered))
	q.Enter(2000*ms, "flood", 1, forever) // there is always one
	for now := 2000 * ms; now < 6000*ms; now += ms {
		if n := q.Enter(now, "hasty", 10, 20*ms); n > 0 {
			q.Leave("hasty", n)
		}
	}
	if n := q.Enter(6000*ms, "hasty", 10, 20*ms); n != 10 || q.State().Limit < Start {
		t.Errorf("%d of 10 entered, %+v", n, q.State())
	}
}

// TestManySourcesAreBounded: each keeps within its share.
func TestManySourcesAreBounded(t *testing.T) {
	q := New(1000)
	for by := range 10_000 {
		q.Enter(0, by, 1, forever)
	}
	if n := q.State().Waiting; n < 1000 || n > 2000 {
		t.Errorf("%d wait, the limit is 1000", n)
	}
}
