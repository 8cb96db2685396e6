package group

import (
	"context"

	"github.com/ringlimit/ringlimit/bucket"
)

// cutoverBatch is how many rules one entry makes effective.
const cutoverBatch = 2048

// Cutover makes newer versions of policies effective from now on, as far as this
// group has counted by older ones; the rest of rules is ignored. It may be
// repeated. It returns the error kinds of Take.
func (r *Replica) Cutover(ctx context.Context, rules []bucket.Rule) error {
	for len(rules) > 0 {
		n := min(len(rules), cutoverBatch)
		outdated := r.outdated(rules[:n])
		rules = rules[n:]
		if len(outdated) == 0 {
			continue
		}
		err := r.ask(ctx, func(ctx context.Context, d *driver, gen uint64) error {
			var out applied
			return r.outcome(d.propose(ctx, gen, proposal{entry: func(stamp int64) []byte {
				return bucket.CutoverEntry(stamp, outdated)
			}}, &out))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Replica) outdated(rules []bucket.Rule) []bucket.Rule {
	f := r.fsm
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.table.Outdated(rules, nil)
}
