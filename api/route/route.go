// Package route is the part of the ring that callers need: from the home
// attributes of a request to its slot. Nodes and clients share this code, so
// that both always agree where a request is decided.
package route

import (
	"encoding/binary"
	"math/bits"

	"github.com/dchest/siphash"
)

// KeySize is the length of a routing key in bytes.
const KeySize = 16

// Hash maps attribute values to slots, keyed so that a caller cannot aim at one slot.
// It is a value: copy it freely. The zero Hash is valid and keyed with zeros.
type Hash struct {
	k0, k1 uint64
	slots  uint64
}

// New returns the hash for a routing key of KeySize bytes over 1 … 65,536 slots.
// ok is false if either is out of range.
func New(key []byte, slots int) (h Hash, ok bool) {
	if len(key) != KeySize || slots < 1 || slots > 1<<16 {
		return Hash{}, false
	}
	return Hash{
		k0:    binary.LittleEndian.Uint64(key),
		k1:    binary.LittleEndian.Uint64(key[8:]),
		slots: uint64(slots),
	}, true
}

// Append adds one field to the unambiguous encoding that is hashed: its length,
// then its bytes. ("a_b","c") and ("a","b_c") differ.
func Append(dst []byte, field string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(field)))
	return append(dst, field...)
}

// Slot returns the slot, 0 … slots-1, of fields encoded by Append.
func (h Hash) Slot(encoded []byte) uint16 {
	hi, _ := bits.Mul64(siphash.Hash(h.k0, h.k1, encoded), h.slots)
	return uint16(hi)
}
