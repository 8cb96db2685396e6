package envoyimport

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/policy/descriptor"
)

// convert makes the policies of a domain.
func (im *importer) convert(d *domain) error {
	for _, s := range d.shapes() {
		s.collect()
		if err := s.overlap(); err != nil {
			return err
		}
		im.shape(s)
	}
	return nil
}

// shape makes the policies of one shape, larger boxes first: a smaller one changes
// nothing for what lies in the larger one and not in it.
func (im *importer) shape(s *shape) {
	slices.SortFunc(s.boxes, func(a, b box) int {
		ae, ap := a.specific()
		be, bp := b.specific()
		return cmp.Or(cmp.Compare(ae, be), cmp.Compare(ap, bp), strings.Compare(a.key(), b.key()))
	})
	f := &family{byValue: map[string][]*made{}}
	var all []*made
	reached := map[*node]bool{}
	for _, b := range s.boxes {
		want := s.walk(b)
		if want != nil && (want.limit == nil || want.limit.unlimited) {
			reached[want] = true
			want = nil
		}
		got := f.winner(s, b)
		isOwn := want != nil && slices.Equal(want.own(), b)
		switch {
		case want == nil && (got == nil || got.node == nil):
			continue // no limit applies, as it should be
		case want != nil && !isOwn && got != nil && got.node == want:
			continue // a larger box answers
		}
		m := im.made(s, b, want)
		reached[want] = true
		f.add(m)
		all = append(all, m)
	}
	im.tell(s, f, all, reached)
	if len(all) > 1 {
		name := im.unique(s, make(box, len(s.keys)), false)
		for _, m := range all {
			m.Family = name
		}
	}
	slices.SortStableFunc(all, func(a, b *made) int { return strings.Compare(a.ID, b.ID) })
	for _, m := range all {
		im.policies = append(im.policies, *m)
	}
}

// made makes one policy.
func (im *importer) made(s *shape, b box, n *node) *made {
	entries := make([]descriptor.Entry, len(s.keys))
	for i, key := range s.keys {
		entries[i].Key = key
	}
	p := &policy.Policy{ID: im.unique(s, b, true), Scope: []string{}}
	match := []string{
		descriptor.Domain, descriptor.Value(descriptor.Domain, s.domain.name),
		descriptor.Shape, descriptor.ShapeOf(entries),
	}
	shared := n.shared()
	for i, name := range descriptor.Names(nil, entries) {
		switch c := b[i]; c.kind {
		case exact:
			match = append(match, name, descriptor.Value(name, c.text))
		case prefix:
			match = append(match, name, c.text+"*")
		}
		if n == nil || !shared[i] {
			p.Scope = append(p.Scope, name)
		}
	}
	p.Match = policy.On(match...)
	p.Limit = bucket.Limit{Algorithm: im.options.Algorithm, Amount: bucket.MaxAmount, Window: int64(time.Millisecond), Burst: bucket.MaxAmount}
	if n == nil {
		p.Limit.Algorithm = bucket.TokenBucket
		return &made{nil, s, b, p}
	}
	if n.limit.amount > bucket.MaxAmount {
		im.note(n, "rate_limit.requests_per_unit", "%d becomes %d, the largest amount there is", n.limit.amount, uint64(bucket.MaxAmount))
	}
	p.Limit.Amount = min(n.limit.amount, bucket.MaxAmount)
	p.Limit.Burst, p.Limit.Window = p.Limit.Amount, int64(n.limit.window)
	if n.limit.shadow {
		p.Mode = policy.Shadow
	}
	return &made{n, s, b, p}
}

// shared says of each level down to n whether its values share one counter.
func (n *node) shared() []bool {
	if n == nil {
		return nil
	}
	return append(n.parent.shared(), n.share)
}

// tell notes what is different about a shape.
func (im *importer) tell(s *shape, f *family, all []*made, reached map[*node]bool) {
	for _, m := range all {
		switch {
		case m.node == nil:
			im.note(s.last(m.box), "", "the policy %s, which denies nothing, keeps a more general limit of these keys from what has none; it costs a log entry for each request", m.ID)
		case m.Mode == policy.Shadow:
			f.larger(s, m.box, func(l *made) {
				if l != m && l.node != nil && l.Mode != policy.Shadow {
					im.note(m.node, "", "in shadow mode it does not lift the more general limit of %s:%d: that stays in force, so that trying out takes nothing away",
						l.node.file, l.node.line)
				}
			})
		}
	}
	for _, n := range s.nodes() {
		if n.limit != nil && !reached[n] {
			im.note(n, "", "left out: no request reaches it, another descriptor of its level fits first")
		}
	}
}

// nodes are those at the end of the shape.
func (s *shape) nodes() []*node {
	level := s.domain.children.all
	for i, key := range s.keys {
		var next []*node
		for _, n := range level {
			switch {
			case n.key != key:
			case i == len(s.keys)-1:
				next = append(next, n)
			default:
				next = append(next, n.children.all...)
			}
		}
		level = next
	}
	return level
}

// The lengths of ids, in bytes.
const (
	maxID = 128
	idSum = 16 // hexadecimal digits of a hash
)

// unique makes the id of a policy: domain and keys, with their values where they have
// one, such as edge|path=/login|remote_address. By id a value comes before none, so
// that of equally specific policies the one that names its values first wins, as in the
// tree. Where that is too long or not printable
// or taken, a hash of all stands for the rest. Of a family, id is false, and it may be
// that of a policy of its own.
func (im *importer) unique(s *shape, b box, id bool) string {
	var text, whole strings.Builder
	text.WriteString(s.domain.name)
	whole.WriteString(s.domain.name + "\x00")
	for i, key := range s.keys {
		text.WriteString("|" + key)
		whole.WriteString(key + "\x00")
		switch b[i].kind {
		case exact:
			text.WriteString("=" + b[i].text)
		case prefix:
			text.WriteString("=" + b[i].text + "*")
		}
	}
	out := text.String()
	plain := !strings.ContainsFunc(out, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && len(out) <= maxID && (!id || !im.ids[out]) {
		if id {
			im.ids[out] = true
		}
		return out
	}
	hash := sha256.Sum256([]byte(whole.String() + b.key()))
	kept := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, out)
	out = kept[:min(len(kept), maxID-1-idSum)] + "~" + hex.EncodeToString(hash[:])[:idSum]
	if id {
		im.ids[out] = true
	}
	return out
}
