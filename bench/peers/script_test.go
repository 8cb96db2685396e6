package main

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/ringlimit/ringlimit/bench/load"
)

// redisHere starts Redis with its replica, or skips where there is none.
func redisHere(t *testing.T) System {
	t.Helper()
	s, err := start(t.Context(), redis, Setup{Dir: t.TempDir()})
	if errors.Is(err, errNoRedis) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// script runs the script on a real server.
type script struct {
	t      *testing.T
	client rueidis.Client
	lua    *rueidis.Lua
}

func newScript(t *testing.T, s System) script {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.Addrs(), DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return script{t, c, rueidis.NewLuaScript(bucketScript)}
}

func (s script) take(key string, burst, amount int64, window time.Duration, cost int64) (admitted bool, left, retry int64) {
	s.t.Helper()
	args := []string{strconv.FormatInt(burst, 10), strconv.FormatInt(amount, 10), strconv.FormatInt(window.Microseconds(), 10), strconv.FormatInt(cost, 10)}
	got, err := s.lua.Exec(context.Background(), s.client, []string{key}, args).AsIntSlice()
	if err != nil || len(got) != 3 {
		s.t.Fatalf("%v, %v", got, err)
	}
	return got[0] == 1, got[1], got[2]
}

func TestScriptIsATokenBucket(t *testing.T) {
	s := newScript(t, redisHere(t))
	t.Run("burst, then denied", func(t *testing.T) {
		for i := range int64(10) {
			if ok, left, _ := s.take("a", 10, 1, time.Hour, 1); !ok || left != 9-i {
				t.Fatalf("take %d: %v, %d left", i, ok, left)
			}
		}
		ok, left, retry := s.take("a", 10, 1, time.Hour, 1)
		if ok || left != 0 || retry <= 3590e6 || retry > 3600e6 {
			t.Errorf("%v, %d left, again in %d µs", ok, left, retry)
		}
	})
	t.Run("a dear take is denied and costs nothing", func(t *testing.T) {
		s.take("b", 10, 1, time.Hour, 4)
		if ok, left, _ := s.take("b", 10, 1, time.Hour, 7); ok || left != 6 {
			t.Errorf("%v, %d left", ok, left)
		}
		if ok, left, _ := s.take("b", 10, 1, time.Hour, 6); !ok || left != 0 {
			t.Errorf("%v, %d left", ok, left)
		}
	})
	t.Run("a full bucket is gone, others expire when they would be full", func(t *testing.T) {
		s.take("c", 100, 10, time.Minute, 5)
		ttl, err := s.client.Do(context.Background(), s.client.B().Pttl().Key("c").Build()).AsInt64()
		if err != nil || ttl <= 25_000 || ttl > 30_000 {
			t.Errorf("expires in %d ms, want 30 s: %v", ttl, err)
		}
	})
}

// TestScriptRefillsAsTheModel spends all at once and then takes as fast as it can: what is
// admitted and what is left in the end is what the time gives, between the moments before
// and after the calls.
func TestScriptRefillsAsTheModel(t *testing.T) {
	s := newScript(t, redisHere(t))
	const burst, amount = 1_000_000, 1000
	before := time.Now()
	if ok, left, _ := s.take("d", burst, amount, time.Second, burst); !ok || left != 0 {
		t.Fatalf("%v, %d left", ok, left)
	}
	after := time.Now()
	admitted, rest, takes := int64(0), int64(0), 0
	last := after
	for ; takes < 1_000_000 && last.Sub(after) < 300*time.Millisecond; takes++ {
		last = time.Now()
		ok, left, _ := s.take("d", burst, amount, time.Second, 1)
		if rest = left; ok {
			admitted++
		}
	}
	tokens := func(d time.Duration) int64 { return int64(d) * amount / int64(time.Second) }
	least, most := tokens(last.Sub(after))-1, tokens(time.Since(before))+1
	if got := admitted + rest; got < least || got > most {
		t.Errorf("%d of %d takes admitted, %d left, want %d … %d in all", admitted, takes, rest, least, most)
	}
}

// TestRedisTargetsAnswer asks through the target, alone and in a batch, without WAIT, with it, and with one that callers share.
func TestRedisTargetsAnswer(t *testing.T) {
	s := redisHere(t)
	for i, way := range []struct{ wait, together bool }{{}, {wait: true}, {true, true}} {
		j := newJob(redis, s, 100, best)
		j.Wait, j.Tuning.WaitTogether = way.wait, way.together
		traffic, err := newTraffic(Fill, 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		target, closed, err := dialRedis(&j, traffic)
		if err != nil {
			t.Fatal(err)
		}
		defer closed()
		var answers []load.Answer
		caller := target.Caller()
		answers = caller.Ask(t.Context(), 0, 1, answers)
		answers = caller.Ask(t.Context(), 95, 105, answers)
		for k, a := range answers {
			spent := k >= 6 // in the first run
			if a.Err != nil || a.Admitted != (i == 0 || !spent) {
				t.Errorf("%+v, answer %d: %+v", way, k, a)
			}
		}
		if len(answers) != 11 {
			t.Errorf("%d answers, want 11", len(answers))
		}
	}
}
