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
		if int64(wait) < every/2 || int64(wait) > every+every/2 {
			t.Errorf("waits %v of %v", wait, time.Duration(every))
		}
		if beat := now.Add(wait); !beat.Equal(beat.Truncate(time.Duration(every))) {
			t.Errorf("%v is no multiple of %v", beat, time.Duration(every))
		}
	})
}
