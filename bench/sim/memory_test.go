package sim

import pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"

// What a run knows of where state was, for the checker of new epochs: which nodes vote in
// each group, and whose process ended and has not been seen to have its memory again.

// forgets notes that a node ends now. w.mu is held.
func (w *world) forgets(name string) { w.memory.Lose(name, w.now()) }

// voters notes which nodes vote in each group. w.mu is held.
func (w *world) voters(r *pb.StatusResponse) {
	for _, g := range r.GetGroups() {
		var names []string
		for _, m := range g.Members {
			if m.Role == "voter" {
				names = append(names, m.Node)
			}
		}
		w.memory.Voters(g.Id, names, w.now())
	}
}

// remembers notes, if all is whole, that every node has its memory. What has just ended is
// not among those that run and is still known to the others, so all is not whole then.
func (w *world) remembers() {
	w.mu.Lock()
	open := w.memory.Open()
	w.mu.Unlock()
	if from := w.now(); len(open) > 0 && w.unhealthy() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.memory.Regained(from, w.now(), open)
	}
}
