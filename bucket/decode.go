package bucket

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of Apply. The state is unchanged, and the replica must stop: it cannot
// follow its log any more.
var (
	ErrVersion   = errors.New("bucket: entry of an unknown version")
	ErrMalformed = errors.New("bucket: malformed entry")
)

// use is a rule as one entry, or one Peek, names it.
type use struct {
	Rule
	ref uint32 // its number in the table; 0 while it is not asked for
}

// ask is a take, decoded.
type ask struct {
	key    Key
	cost   uint64 // 0 … MaxAmount+1
	use    uint32 // its rule: index in uses
	slot   uint16
	shadow bool
}

// job is a request, decoded: asks[first:first+count].
type job struct {
	id           ID
	first, count int
	session      uint32 // perhaps the record of id's session, found ahead
	number       uint64 // Request.Amount or Request.Permit, by op
	share        uint64 // Request.Share
	home         uint16
	op           Op
	noNew        bool
}

// work is a decoded entry, reused from one to the next.
type work struct {
	jobs     []job
	asks     []ask
	uses     []use
	sessions []session
}

func (w *work) reset() {
	w.jobs, w.asks, w.uses, w.sessions = w.jobs[:0], w.asks[:0], w.uses[:0], w.sessions[:0]
}

// reader takes an entry apart. After the first thing that is missing or wrong,
// bad stays set and all it reads is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad = true
		return make([]byte, n) // small: n is a constant of at most 16
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) u8() byte    { return r.bytes(1)[0] }
func (r *reader) u16() uint16 { return le.Uint16(r.bytes(2)) }
func (r *reader) u32() uint32 { return le.Uint32(r.bytes(4)) }
func (r *reader) u64() uint64 { return le.Uint64(r.bytes(8)) }

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 && !r.bad {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// counted reads a number of things that have at least size bytes each.
func (r *reader) counted(n uint64, limit, size int) int {
	if n > uint64(limit) || n > uint64(len(r.b)/size) {
		r.bad = true
		return 0
	}
	return int(n)
}

// requests decodes the body of a requests entry.
func (w *work) requests(body []byte) error {
	w.reset()
	r := reader{b: body}
	for range r.counted(uint64(r.u32()), MaxEntryRequests, minRequest) {
		if err := w.request(&r); err != nil {
			return err
		}
	}
	if r.bad || len(r.b) > 0 {
		return fmt.Errorf("%w: request %d of this entry", ErrMalformed, len(w.jobs))
	}
	return nil
}

func (w *work) request(r *reader) error {
	flags := r.u8()
	j := job{home: r.u16(), noNew: flags&flagNoNew != 0, first: len(w.asks)}
	j.id.Kind = IDKind(flags & flagKind)
	if flags&^flagsAll != 0 || j.id.Kind > OwnID {
		r.bad = true
	}
	if j.op = Op(flags & flagOp >> flagOpShift); j.op != OpTake && j.op != OpUndo {
		j.number = r.uvarint()
	}
	if j.op == OpLease {
		j.share = r.uvarint()
	}
	w.id(r, &j.id, flags&flagAged != 0)
	j.count = r.counted(r.uvarint(), MaxRequestTakes, minTake)
	r.bad = r.bad || !j.op.carries(j.count)
	for range j.count {
		if err := w.ask(r, j.home); err != nil {
			return err
		}
	}
	if r.bad {
		return fmt.Errorf("%w: request %d of this entry", ErrMalformed, len(w.jobs))
	}
	w.jobs = append(w.jobs, j)
	return nil
}

func (w *work) id(r *reader, id *ID, aged bool) {
	switch id.Kind {
	case ClientID:
		s := w.session(r)
		id.Session, id.Acked = s.id, s.acked
		id.Sequence = r.uvarint()
	case OwnID:
		id.Own = Key{Hi: r.u64(), Lo: r.u64()}
	default:
		r.bad = r.bad || aged
		return
	}
	id.Content = r.u64()
	if aged {
		id.AgeNanos = r.uvarint()
	}
}

func (w *work) session(r *reader) session {
	n := r.uvarint()
	switch {
	case n < uint64(len(w.sessions)):
		return w.sessions[n]
	case n > uint64(len(w.sessions)):
		r.bad = true
		return session{}
	}
	s := session{id: r.u64(), acked: r.uvarint()}
	w.sessions = append(w.sessions, s)
	return s
}

func (w *work) ask(r *reader, home uint16) error {
	away := r.uvarint()
	if away > 0xffff {
		r.bad = true
	}
	a := ask{slot: home ^ uint16(away)}
	a.key = Key{Hi: r.u64(), Lo: r.u64()}
	n := r.uvarint()
	if n > uint64(len(w.uses)) {
		r.bad = true
	}
	if n == uint64(len(w.uses)) && !r.bad {
		if err := w.use(r); err != nil {
			return err
		}
	}
	a.use = uint32(n)
	cost := r.uvarint()
	a.cost, a.shadow = min(cost>>1, MaxAmount+1), cost&1 != 0
	w.asks = append(w.asks, a)
	return nil
}

func (w *work) use(r *reader) error {
	rule, err := r.rule()
	if err != nil {
		return err
	}
	w.uses = append(w.uses, use{Rule: rule})
	return nil
}

// rule reads a rule that is written out.
func (r *reader) rule() (Rule, error) {
	u := Rule{Policy: r.u64(), Version: r.u64()}
	u.Limit.Algorithm, u.Loss = Algorithm(r.u8()), Loss(r.u8())
	u.Limit.Amount = r.uvarint()
	u.Limit.Burst = r.uvarint()
	u.Limit.Window = int64(min(r.uvarint(), MaxWindow))
	if !r.bad && !u.Limit.Algorithm.known() {
		return u, fmt.Errorf("%w: algorithm %d", ErrVersion, uint8(u.Limit.Algorithm))
	}
	if !u.Loss.known() {
		return u, fmt.Errorf("%w: loss %d", ErrVersion, uint8(u.Loss))
	}
	u.Limit = u.Limit.clamped()
	return u, nil
}
