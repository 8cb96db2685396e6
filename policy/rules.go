package policy

import (
	"github.com/zeebo/xxh3"

	"github.com/ringlimit/ringlimit/bucket"
)

// Rules returns the rules to cut over to on the way from one set to the next,
// both by id: the newest rule of each policy and override that is new or has
// changed. An override that has ended cuts over to the limit of its policy, as of
// version, the newest of the set; of a policy that is gone there is no rule.
// old may be nil: no policies.
func Rules(old, next *Set, version uint64) []bucket.Rule {
	if old == nil {
		old = &Set{}
	}
	var out []bucket.Rule
	for was, now := range pairs(old.Policies, next.Policies, byID) {
		if now == nil || was == now || was != nil && was.Version == now.Version {
			continue
		}
		out = append(out, bucket.Rule{Policy: xxh3.HashString(now.ID), Version: now.Version, Limit: now.Limit, Loss: now.OnStateLoss.Loss()})
	}
	for was, now := range pairs(old.Overrides, next.Overrides, (*Override).Compare) {
		if now != nil {
			p, ok := next.Find(now.Policy)
			before, known := old.Find(now.Policy)
			if ok && (was != now || !known || before.Version != p.Version) {
				out = append(out, now.Rule(p))
			}
			continue
		}
		if p, ok := next.Find(was.Policy); ok {
			out = append(out, bucket.Rule{Policy: was.Number(), Version: version, Limit: p.Limit, Loss: p.OnStateLoss.Loss()})
		}
	}
	return out
}

// pairs walks two sorted lists side by side; what only one has comes with nil.
func pairs[T any](a, b []*T, compare func(a, b *T) int) func(yield func(a, b *T) bool) {
	return func(yield func(a, b *T) bool) {
		for len(a) > 0 || len(b) > 0 {
			order := 0
			switch {
			case len(a) == 0:
				order = 1
			case len(b) == 0:
				order = -1
			case a[0] != b[0]:
				order = compare(a[0], b[0])
			}
			var x, y *T
			if order <= 0 {
				x, a = a[0], a[1:]
			}
			if order >= 0 {
				y, b = b[0], b[1:]
			}
			if !yield(x, y) {
				return
			}
		}
	}
}
