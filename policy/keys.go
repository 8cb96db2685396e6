package policy

import (
	"encoding/binary"
	"fmt"

	"github.com/dchest/siphash"
	"github.com/ringlimit/ringlimit/api/route"
	"github.com/ringlimit/ringlimit/bucket"
)

// Keys are what a cluster's hashes are keyed with.
type Keys struct {
	Secret  [16]byte // bucket identities and request ids; never leaves the nodes
	Routing [16]byte // home values → slot; clients have it too
	Slots   int      // 1 … 65,536
}

// hasher makes slots and keys from the values of requests. What it hashes begins
// with a byte that says what it is, then fields encoded by route.Append; slots
// alone are hashed without that byte, as clients do.
type hasher struct {
	slots  route.Hash
	k0, k1 uint64
	home   []term
}

// What a keyed hash is of.
const (
	ofBucket  = 'b'
	ofHome    = 'h'
	ofScope   = 's'
	ofContent = 'c'
	ofOwnID   = 'o'
	ofSession = 's'
)

func newHasher(home []string, k Keys) (hasher, error) {
	slots, ok := route.New(k.Routing[:], k.Slots)
	if !ok {
		return hasher{}, fmt.Errorf("%d slots, want 1 … 65,536", k.Slots)
	}
	h := hasher{
		slots: slots,
		k0:    binary.LittleEndian.Uint64(k.Secret[:]),
		k1:    binary.LittleEndian.Uint64(k.Secret[8:]),
	}
	for _, name := range home {
		h.home = append(h.home, termOf(name))
	}
	return h, nil
}

// Home is the home of a request: the slot of its home values and a hash of them,
// whose upper half all buckets of the home have in their keys.
type Home struct {
	Slot uint16
	Hash uint64
	OK   bool // false: the request lacks one of the values, and has no home
}

// Home returns the home of a request.
func (h *hasher) Home(r *Request) Home {
	var stack [256]byte
	v := values{r: r, route: cutRoute(r.Route)}
	buf := append(stack[:0], ofHome)
	for _, t := range h.home {
		value := v.get(t)
		if value == "" {
			return Home{}
		}
		buf = route.Append(buf, value)
	}
	return Home{h.slots.Slot(buf[1:]), siphash.Hash(h.k0, h.k1, buf), true}
}

// scopeBucket is slot and key of a bucket that is in no home: slot and tag are
// by the names and values of the scope, in the order of names.
func (h *hasher) scopeBucket(e *entry, v *values) (uint16, bucket.Key) {
	var stack [256]byte
	buf := appendScope(append(stack[:0], ofScope), e, v)
	tag := uint32(siphash.Hash(h.k0, h.k1, buf) >> 32)
	return h.slots.Slot(buf[1:]), h.bucketKey(e, v, tag)
}

// bucketKey is the identity of the bucket that a policy counts a request in, with
// a tag in the lower 32 bits of Hi: a table splits a slot by the upper ones, so that
// a home with very many buckets is split as well.
func (h *hasher) bucketKey(e *entry, v *values, tag uint32) bucket.Key {
	var stack [256]byte
	buf := append(stack[:0], ofBucket)
	buf = route.Append(buf, e.policy.ID)
	k := h.key(appendScope(buf, e, v))
	k.Hi = k.Hi&^(1<<32-1) | uint64(tag)
	if k == (bucket.Key{}) {
		k.Lo = 1
	}
	return k
}

func appendScope(dst []byte, e *entry, v *values) []byte {
	for _, t := range e.scope.terms {
		dst = route.Append(dst, t.name)
		dst = route.Append(dst, v.get(t))
	}
	return dst
}

// OwnKey is the identity of a caller's own request id within a home, the hash
// that Home returned or, without one, the slot of the first bucket.
func (h *hasher) OwnKey(home uint64, id string) bucket.Key {
	var stack [128]byte
	buf := append(stack[:0], ofOwnID)
	buf = binary.LittleEndian.AppendUint64(buf, home)
	return h.key(route.Append(buf, id))
}

// key is the 128-bit keyed hash; the zero key, which means no key, is avoided.
func (h *hasher) key(encoded []byte) bucket.Key {
	k := bucket.Key{}
	k.Hi, k.Lo = siphash.Hash128(h.k0, h.k1, encoded)
	if k == (bucket.Key{}) {
		k.Lo = 1
	}
	return k
}

// Session is a client's session number as tables know it: keyed, so that nobody
// can choose numbers that collide in a table's index.
func (h *hasher) Session(session uint64) uint64 {
	var stack [9]byte
	buf := append(stack[:0], ofSession)
	return siphash.Hash(h.k0, h.k1, binary.LittleEndian.AppendUint64(buf, session))
}

// Content is a fingerprint of a whole request, costs included. The order of
// principals, attributes and costs does not matter, and empty ones do not count.
func (h *hasher) Content(r *Request) uint64 {
	var stack [512]byte
	buf := append(stack[:0], ofContent)
	buf = route.Append(buf, r.Tenant)
	buf = route.Append(buf, cutRoute(r.Route))
	buf = route.Append(buf, r.Plan)
	buf = route.Append(buf, r.Region)
	buf = binary.LittleEndian.AppendUint64(buf, r.Cost)

	var order [MaxAttributes]uint8 // no list is longer
	names := order[:0]
	for i := range min(len(r.Costs), len(order)) {
		names = insert(names, uint8(i), func(a, b uint8) bool { return r.Costs[a].Policy < r.Costs[b].Policy })
	}
	buf = append(buf, uint8(len(names)))
	for _, i := range names {
		buf = route.Append(buf, r.Costs[i].Policy)
		buf = binary.LittleEndian.AppendUint64(buf, r.Costs[i].Cost)
	}
	names = order[:0]
	for i := range min(len(r.Principals), len(order)) {
		names = insert(names, uint8(i), func(a, b uint8) bool { return r.Principals[a].Type < r.Principals[b].Type })
	}
	buf = append(buf, uint8(len(names)))
	for _, i := range names {
		buf = route.Append(buf, r.Principals[i].Type)
		buf = route.Append(buf, r.Principals[i].ID)
	}
	names = order[:0]
	for i := range min(len(r.Attributes), len(order)) {
		if r.Attributes[i].Value != "" {
			names = insert(names, uint8(i), func(a, b uint8) bool { return r.Attributes[a].Name < r.Attributes[b].Name })
		}
	}
	for _, i := range names {
		buf = route.Append(buf, r.Attributes[i].Name)
		buf = route.Append(buf, r.Attributes[i].Value)
	}
	return siphash.Hash(h.k0, h.k1, buf)
}

// insert puts i into sorted, which has room.
func insert(sorted []uint8, i uint8, less func(a, b uint8) bool) []uint8 {
	sorted = append(sorted, i)
	for at := len(sorted) - 1; at > 0 && less(sorted[at], sorted[at-1]); at-- {
		sorted[at], sorted[at-1] = sorted[at-1], sorted[at]
	}
	return sorted
}
