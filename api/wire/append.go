package wire

import "encoding/binary"

// The primitives of encoding. Fields that have their zero value are left out,
// as proto3 does.

// AppendUint appends a varint field numbered 1 … 15.
func AppendUint(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, byte(num<<3)), v)
}

// AppendBool appends a bool field numbered 1 … 15.
func AppendBool(dst []byte, num int, v bool) []byte {
	if !v {
		return dst
	}
	return append(dst, byte(num<<3), 1)
}

// AppendFixed64 appends a fixed64 field numbered 1 … 15.
func AppendFixed64(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint64(append(dst, byte(num<<3|1)), v)
}

// AppendString appends a string field numbered 1 … 15.
func AppendString(dst []byte, num int, v string) []byte {
	if v == "" {
		return dst
	}
	dst = binary.AppendUvarint(append(dst, byte(num<<3|2)), uint64(len(v)))
	return append(dst, v...)
}

// Open begins a message field numbered 1 … 15; what is appended until Close is
// its content. start goes to Close.
func Open(dst []byte, num int) (out []byte, start int) {
	dst = append(dst, byte(num<<3|2), 0)
	return dst, len(dst)
}

// Open16 is Open for a field numbered 16 … 2047.
func Open16(dst []byte, num int) (out []byte, start int) {
	dst = append(dst, byte(num<<3|2)|0x80, byte(num>>4), 0)
	return dst, len(dst)
}

// Close writes the length of the message field opened at start. One byte was
// left for it; the rare longer message is moved.
func Close(dst []byte, start int) []byte {
	n := len(dst) - start
	if n < 0x80 {
		dst[start-1] = byte(n)
		return dst
	}
	var length [binary.MaxVarintLen64]byte
	w := binary.PutUvarint(length[:], uint64(n))
	dst = append(dst, length[:w-1]...) // room for the move
	copy(dst[start+w-1:], dst[start:start+n])
	copy(dst[start-1:], length[:w])
	return dst
}
