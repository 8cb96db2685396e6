package group

import (
	"slices"
	"sync/atomic"

	"github.com/ringlimit/ringlimit/bucket"
)

// suspects remembers buckets that were found empty of late: only for those does it
// pay to judge a take ahead of the log. Judging costs cache misses that admitted
// traffic should not pay for; a hammered bucket is denied by the log once, and
// from the applied state from then on.
//
// It is a hint, shared without a lock: a bucket that pushes another out, or is
// forgotten, costs a commit more, and one too many costs a look at the table.
type suspects struct {
	keys [1 << 14]atomic.Uint64
}

func (s *suspects) at(k bucket.Key) *atomic.Uint64 { return &s.keys[k.Lo%uint64(len(s.keys))] }

// any says whether one of the buckets was found empty of late.
func (s *suspects) any(takes []bucket.Take) bool {
	for i := range takes {
		if k := takes[i].Key; s.at(k).Load() == k.Hi && k.Hi != 0 {
			return true
		}
	}
	return false
}

// add notes that these buckets are, or one of them is, empty.
func (s *suspects) add(takes []bucket.Take) {
	for i := range takes {
		k := takes[i].Key
		s.at(k).Store(k.Hi)
	}
}

// clear notes that a request for these buckets would be admitted again.
func (s *suspects) clear(takes []bucket.Take) {
	for i := range takes {
		k := takes[i].Key
		s.at(k).CompareAndSwap(k.Hi, 0)
	}
}

// learn takes in what became of requests that an entry decided: the buckets of
// those denied, and of those that took the last token.
func (s *suspects) learn(reqs []Request, out *Outcome) {
	for i := range reqs {
		item := &out.Results.Items[i]
		if out.Uncommitted[i] || item.Code != bucket.Denied && item.Code != bucket.Admitted {
			continue
		}
		answers := out.Results.Answers[item.First : item.First+item.Count]
		if item.Code == bucket.Denied || slices.ContainsFunc(answers, func(a bucket.Answer) bool { return a.Remaining == 0 }) {
			s.add(reqs[i].Takes)
		}
	}
}
