package fleet

import (
	"testing"
	"time"
)

func TestMachineTimeIsWithoutIdleTime(t *testing.T) {
	used, err := parseMachine("cpu  100 20 30 5000 600 7 8 9 10 11")
	if err != nil || used != 1740*time.Millisecond {
		t.Errorf("%v, %v; want 1.74 s", used, err)
	}
	for _, line := range []string{"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "cpu a b c d e f g h"} {
		if _, err := parseMachine(line); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}
