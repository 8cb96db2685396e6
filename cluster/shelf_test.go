package cluster

import (
	"sync"
	"testing"
)

// TestShelfPutsNothingAwayThatIsRead: whoever gets a source while sources are put
// away has the one that others will get too, and it stays open for as long.
func TestShelfPutsNothingAwayThatIsRead(t *testing.T) {
	f := &slotsFile{}
	f.head.ID, f.head.Slots = "backup", 8
	n := &Node{backup: f}
	h := newShelf(n)
	call := &readCall{Kind: fromBackup, Name: "backup", Reader: "a"}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				s, err := h.get(t.Context(), call)
				if err != nil {
					t.Error(err)
					return
				}
				h.mu.Lock()
				if len(h.at) != 1 || s.copy == nil {
					t.Error("what is read is not on the shelf")
				}
				h.mu.Unlock()
				s.mu.Unlock()
				h.close()
			}
		})
	}
	wg.Wait()
	h.close()
	if len(h.at) != 0 {
		t.Errorf("%d sources are left", len(h.at))
	}
}
