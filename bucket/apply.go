package bucket

import (
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// ErrOrder is returned by Apply for an index at or below the last one.
var ErrOrder = errors.New("bucket: entry out of order")

// maxSweep bounds the cells that one stamp entry can ask the sweep to visit.
const maxSweep = 1 << 16

// Apply obeys one entry of the log and appends to out one Result per request,
// in order; out may be nil. Time becomes the later of the entry's stamp and the
// table's. On an error (ErrVersion, ErrMalformed, ErrOrder) nothing has changed
// and the replica must stop. entry is not kept.
func (t *Table) Apply(index uint64, entry []byte, out *Results) error {
	if index <= t.index {
		return fmt.Errorf("%w: index %d after %d", ErrOrder, index, t.index)
	}
	stamp, ok := EntryStamp(entry)
	if !ok || len(entry) > MaxEntryBytes {
		return fmt.Errorf("%w: %d bytes, first %x", ErrVersion, len(entry), entry[:min(len(entry), 2)])
	}
	l := link{out: out}
	if out == nil {
		l.out, l.discard = &t.discard, true
		l.out.Reset()
	}
	l.first = len(l.out.Items)
	l.chain = fold(fold(t.chain, index), xxh3.Hash(entry))
	if err := t.obey(entryKind(entry[1]), entry[entryBody:], stamp, &l); err != nil {
		return err
	}
	l.fold()
	t.index, t.chain = index, l.chain
	return nil
}

// obey decodes the whole body before it changes anything.
func (t *Table) obey(kind entryKind, body []byte, stamp int64, l *link) error {
	now := max(stamp, t.time)
	switch kind {
	case requestsEntry:
		if err := t.work.requests(body); err != nil {
			return err
		}
		t.gate.Lock()
		defer t.gate.Unlock()
		t.advance(now)
		was := t.made()
		t.requests(l)
		t.sweepAfter(len(t.work.asks), was)
		t.clearRuins(clearPerEntry)
	case sweepEntry:
		r := reader{b: body}
		n := int(min(r.uvarint(), maxSweep))
		if r.bad || len(r.b) > 0 {
			return fmt.Errorf("%w: sweep", ErrMalformed)
		}
		t.gate.Lock()
		defer t.gate.Unlock()
		t.advance(now)
		t.sweep(n, n/4)
		t.clearRuins(max(n/2, clearPerEntry))
	case holdEntry:
		slots, err := t.holdSlots(body)
		if err != nil {
			return err
		}
		t.advance(now)
		t.hold(slots)
	case cutoverEntry:
		rules, err := cutoverRules(body)
		if err != nil {
			return err
		}
		t.advance(now)
		t.cutOver(rules)
	default:
		return t.move(kind, body, stamp, now, l.out)
	}
	return nil
}

// cutoverRules decodes the body of a cutover entry.
func cutoverRules(body []byte) ([]Rule, error) {
	const minRule = 21
	r := reader{b: body}
	rules := make([]Rule, r.counted(r.uvarint(), MaxEntryRequests, minRule))
	for i := range rules {
		var err error
		if rules[i], err = r.rule(); err != nil {
			return nil, err
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: cutover", ErrMalformed)
	}
	return rules, nil
}

// cutOver lets newer versions of policies that are known here begin now.
func (s *state) cutOver(rules []Rule) {
	for _, rule := range rules {
		u := use{Rule: rule}
		if s.rules.stand(&u) == newerRule {
			s.rules.refer(&u)
		}
	}
}

func (t *Table) holdSlots(body []byte) ([]uint16, error) {
	r := reader{b: body}
	slots := make([]uint16, r.counted(r.uvarint(), 1<<16, 2))
	for i := range slots {
		slots[i] = r.u16()
		if int(slots[i]) >= len(t.slots) {
			return nil, fmt.Errorf("%w: slot %d of %d", ErrMalformed, slots[i], len(t.slots))
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: hold", ErrMalformed)
	}
	return slots, nil
}

// requests decides some at a time, so that what was loaded ahead for them, and their
// results, are still near when they are used.
func (t *Table) requests(l *link) {
	t.judge.group = t.time
	for jobs := range slices.Chunk(t.work.jobs, aheadRequests) {
		if len(jobs) > 1 {
			t.touchAhead(jobs)
		}
		for i := range jobs {
			t.decide(&jobs[i], &t.work, l.out, true)
		}
		l.fold()
	}
}

// Peek judges r, an OpTake or OpLease, as Apply would at max(stamp, Time), changes nothing,
// and appends one Result to out. No permit is granted, so none is named. Of
// another Op it says NothingToRefund.
func (t *Table) Peek(stamp int64, r *Request, out *Results) {
	t.judge.group = max(stamp, t.time)
	w := &t.work
	w.reset()
	j := job{op: r.Op, id: r.ID, count: len(r.Takes), number: r.Amount, share: r.Share, home: r.Home, noNew: r.NoNewBucket}
	for i := range r.Takes {
		k := &r.Takes[i]
		if i == 0 || k.Rule != r.Takes[i-1].Rule {
			u := use{Rule: k.Rule}
			u.Limit = u.Limit.clamped()
			w.uses = append(w.uses, u)
		}
		w.asks = append(w.asks, ask{
			key: k.Key, cost: min(k.Cost, MaxAmount+1), use: uint32(len(w.uses) - 1), slot: k.Slot, shadow: k.Shadow,
		})
	}
	if !r.Op.takes() {
		out.Items = append(out.Items, Result{Code: NothingToRefund, First: int32(len(out.Answers)), SlotTime: t.timeIn(r.Home)})
		return
	}
	t.decide(&j, w, out, false)
}
