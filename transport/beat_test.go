package transport

import (
	"testing"
	"time"
)

func FuzzUntilBeat(f *testing.F) {
	f.Add(int64(0), int64(50*time.Millisecond))
	f.Add(int64(49_999_999), int64(50*time.Millisecond))
	f.Add(int64(50_000_001), int64(50*time.Millisecond))
	f.Fuzz(func(t *testing.T, at, every int64) {
		every = max(every, 2) % int64(time.Hour)
		if every < 2 {
			return
		}
		now := time.Unix(0, at)
		wait := UntilBeat(now, time.Duration(every))
		if int64(wait) < every/8 || int64(wait) > every+every/8 {
			t.Errorf("waits %v of %v", wait, time.Duration(every))
		}
		if beat := now.Add(wait); !beat.Equal(beat.Truncate(time.Duration(every))) {
			t.Errorf("%v is no multiple of %v", beat, time.Duration(every))
		}
	})
}

// TestLateBeatsKeepTheirRate: who is always late is woken as often as others.
func TestLateBeatsKeepTheirRate(t *testing.T) {
	const every = 50 * time.Millisecond
	for late := time.Duration(0); late < every*7/8; late += time.Millisecond {
		now := time.Unix(1, 0)
		for range 100 {
			now = now.Add(UntilBeat(now, every) + late)
			if now.Truncate(every).Add(late).Before(now.Add(-late)) && UntilBeat(now, every) > every {
				t.Fatalf("late by %v, at %v: waits %v", late, now, UntilBeat(now, every))
			}
		}
		if took := now.Sub(time.Unix(1, 0)); took > 101*every+late {
			t.Errorf("late by %v: 100 beats took %v", late, took)
		}
	}
}
