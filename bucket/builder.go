package bucket

import "encoding/binary"

// Builder encodes requests straight into one entry, on the leader. The zero
// Builder is ready. Not for use by several goroutines at once.
type Builder struct {
	buf      []byte
	count    int
	rules    map[Rule]uint32
	sessions map[session]uint32

	lastRule    Rule // of the request before, at lastRuleAt: most requests repeat it
	lastRuleAt  uint32
	lastSession session
	lastSessAt  uint32
}

// session is one entry's mention of a session; another acked is another mention.
type session struct{ id, acked uint64 }

// Reset empties b and keeps its memory.
func (b *Builder) Reset() {
	b.buf, b.count = b.buf[:0], 0
	clear(b.rules)
	clear(b.sessions)
	b.lastRule, b.lastSession = Rule{}, session{}
	b.lastRuleAt, b.lastSessAt = 0, 0
}

// Len is the number of requests added.
func (b *Builder) Len() int { return b.count }

// Bytes is the size of the entry so far.
func (b *Builder) Bytes() int { return len(b.buf) }

// Add appends r. It returns false and adds nothing if the entry would exceed
// MaxEntryRequests or MaxEntryBytes; an empty Builder returns false only for a
// request that no entry can carry: of more than MaxRequestTakes takes, of an
// unknown Op, or of another number of takes than its Op has. The limits of r
// must be valid.
func (b *Builder) Add(r *Request) bool {
	if b.count == MaxEntryRequests || !r.Op.carries(len(r.Takes)) {
		return false
	}
	if len(b.buf) == 0 {
		b.begin()
	}
	size, rules, sessions := len(b.buf), len(b.rules), len(b.sessions)
	b.request(r)
	if len(b.buf) > MaxEntryBytes {
		b.undo(size, rules, sessions)
		return false
	}
	b.count++
	return true
}

// carries says whether a request of this kind can have n takes.
func (o Op) carries(n int) bool {
	switch o {
	case OpTake, OpLease:
		return n >= 1 && n <= MaxRequestTakes
	case OpRefund, OpUndo:
		return n <= MaxRequestTakes
	case OpRelease, OpRenew:
		return n == 1
	}
	return false
}

// takes says whether o charges what its takes say.
func (o Op) takes() bool { return o == OpTake || o == OpLease }

func (b *Builder) begin() {
	if b.rules == nil {
		b.rules = make(map[Rule]uint32)
		b.sessions = make(map[session]uint32)
	}
	b.buf = appendHeader(b.buf, requestsEntry, 0)
	b.buf = append(b.buf, 0, 0, 0, 0)
}

// undo takes back a request that did not fit, with the rules and sessions it announced.
func (b *Builder) undo(size, rules, sessions int) {
	b.buf = b.buf[:size]
	for r, n := range b.rules {
		if int(n) >= rules {
			delete(b.rules, r)
		}
	}
	for s, n := range b.sessions {
		if int(n) >= sessions {
			delete(b.sessions, s)
		}
	}
	b.lastRule, b.lastSession = Rule{}, session{}
}

// Entry finishes the entry with its stamp (ns of group time). It is valid until
// Reset or the next Add, and stays b's.
func (b *Builder) Entry(stamp int64) []byte {
	if len(b.buf) == 0 {
		b.begin()
	}
	binary.LittleEndian.PutUint64(b.buf[entryStamp:], uint64(stamp))
	binary.LittleEndian.PutUint32(b.buf[entryBody:], uint32(b.count))
	return b.buf
}

// Detach is Entry and Reset in one; the entry is the caller's to keep.
func (b *Builder) Detach(stamp int64) []byte {
	e := b.Entry(stamp)
	b.buf = make([]byte, 0, len(e)+len(e)/8)
	b.Reset()
	return e
}

func (b *Builder) request(r *Request) {
	flags := byte(r.ID.Kind)&flagKind | byte(r.Op)<<flagOpShift&flagOp
	if r.NoNewBucket {
		flags |= flagNoNew
	}
	if r.ID.Kind != NoID && r.ID.AgeNanos != 0 {
		flags |= flagAged
	}
	b.buf = append(b.buf, flags)
	b.buf = binary.LittleEndian.AppendUint16(b.buf, r.Home)
	switch r.Op {
	case OpRefund:
		b.buf = binary.AppendUvarint(b.buf, r.Amount)
	case OpLease:
		b.buf[0] = leaseEntryVersion
		b.buf = binary.AppendUvarint(b.buf, r.Amount)
		b.buf = binary.AppendUvarint(b.buf, r.Share)
	case OpRelease, OpRenew:
		b.buf = binary.AppendUvarint(b.buf, r.Permit)
	}
	b.id(&r.ID)
	b.buf = binary.AppendUvarint(b.buf, uint64(len(r.Takes)))
	for i := range r.Takes {
		t := &r.Takes[i]
		b.buf = binary.AppendUvarint(b.buf, uint64(t.Slot^r.Home))
		b.key(t.Key)
		b.rule(&t.Rule)
		cost := min(t.Cost, MaxAmount+1) << 1
		if t.Shadow {
			cost |= 1
		}
		b.buf = binary.AppendUvarint(b.buf, cost)
	}
}

func (b *Builder) id(id *ID) {
	switch id.Kind {
	case ClientID:
		b.session(session{id: id.Session, acked: id.Acked})
		b.buf = binary.AppendUvarint(b.buf, id.Sequence)
	case OwnID:
		b.key(id.Own)
	default:
		return
	}
	b.buf = binary.LittleEndian.AppendUint64(b.buf, id.Content)
	if id.AgeNanos != 0 {
		b.buf = binary.AppendUvarint(b.buf, id.AgeNanos)
	}
}

func (b *Builder) key(k Key) {
	b.buf = binary.LittleEndian.AppendUint64(b.buf, k.Hi)
	b.buf = binary.LittleEndian.AppendUint64(b.buf, k.Lo)
}

func (b *Builder) session(s session) {
	if len(b.sessions) > 0 && s == b.lastSession {
		b.buf = binary.AppendUvarint(b.buf, uint64(b.lastSessAt))
		return
	}
	n, known := b.sessions[s]
	if !known {
		n = uint32(len(b.sessions))
		b.sessions[s] = n
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(n))
	if !known {
		b.buf = binary.LittleEndian.AppendUint64(b.buf, s.id)
		b.buf = binary.AppendUvarint(b.buf, s.acked)
	}
	b.lastSession, b.lastSessAt = s, n
}

func (b *Builder) rule(r *Rule) {
	if len(b.rules) > 0 && *r == b.lastRule {
		b.buf = binary.AppendUvarint(b.buf, uint64(b.lastRuleAt))
		return
	}
	n, known := b.rules[*r]
	if !known {
		n = uint32(len(b.rules))
		b.rules[*r] = n
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(n))
	if !known {
		b.buf = appendRule(b.buf, r)
	}
	b.lastRule, b.lastRuleAt = *r, n
}

func appendRule(b []byte, r *Rule) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Policy)
	b = binary.LittleEndian.AppendUint64(b, r.Version)
	b = append(b, byte(r.Limit.Algorithm), byte(r.Loss))
	b = binary.AppendUvarint(b, r.Limit.Amount)
	b = binary.AppendUvarint(b, r.Limit.Burst)
	return binary.AppendUvarint(b, uint64(r.Limit.Window))
}
