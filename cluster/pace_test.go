package cluster

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A turn that is given up counts for nobody: who comes later does not wait for it.
func TestPaceGivesBackATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{rate: 1000}
		begun := time.Now()
		if err := p.wait(t.Context(), 1000); err != nil || time.Since(begun) != 0 {
			t.Fatalf("the first piece: %v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := p.wait(ctx, 5000); err == nil {
			t.Fatal("5 s of bytes went within 100 ms")
		}
		if err := p.wait(t.Context(), 1000); err != nil || time.Since(begun) != time.Second {
			t.Errorf("the next piece: %v after %v, want 1 s", err, time.Since(begun))
		}
	})
}
