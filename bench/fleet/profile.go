package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Profile writes a profile of the node to w: what stands after /debug/pprof/, such as
// "heap?gc=1" or "profile?seconds=5", which takes so long. It needs --enable-pprof.
func (n *Node) Profile(ctx context.Context, what string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("profile of node %s: %w", n.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile %s of node %s: %s", what, n.Name, resp.Status)
	}
	_, err = io.Copy(w, resp.Body)
	return err
}

// LiveHeap makes the node collect its garbage, and returns what is left, in bytes.
// The profile of it, as text, goes to w. It needs --enable-pprof.
func (n *Node) LiveHeap(ctx context.Context, w io.Writer) (float64, error) {
	if err := n.Profile(ctx, "heap?gc=1&debug=1", w); err != nil {
		return 0, err
	}
	return n.Metric(ctx, "go_memstats_heap_alloc_bytes")
}
