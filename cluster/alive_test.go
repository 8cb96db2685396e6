package cluster

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// A group that was given up once, or looked so at one look, has to be lost for the
// whole time again before it is given up.
func TestEachLossOfAMajorityIsWaitedFor(t *testing.T) {
	now := time.Now()
	at := newSightings(new(control.State), now)
	lost := []control.Command{control.NewEpoch{Group: 7, Epoch: 1}}
	for range 2 {
		at.judge(lost, now)
		if at.patient(7, now) || at.patient(8, now) {
			t.Error("given up at first sight")
		}
		at.judge(lost, now.Add(epochAfter/2))
		if at.patient(7, now.Add(epochAfter/2)) {
			t.Error("given up too early")
		}
		now = now.Add(epochAfter)
		at.judge(lost, now)
		if !at.patient(7, now) {
			t.Error("not given up")
		}
		now = now.Add(time.Hour)
		at.judge(nil, now) // it is whole again
	}
}
