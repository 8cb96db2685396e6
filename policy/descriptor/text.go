package descriptor

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/policy"
)

// The bounds of what a request carries, in bytes.
const (
	maxName   = 64
	maxTenant = policy.MaxTenant
	maxValue  = policy.MaxValue

	sum     = 32 // hexadecimal digits of a SHA-256 that stand for what is cut off
	utf8Max = utf8.UTFMax
)

// escape percent-encodes what is not printable ASCII, and the bytes of more. The
// empty text becomes %-, which is no encoding of anything else.
func escape(s, more string) string {
	plain := s != ""
	for i := range len(s) {
		plain = plain && clean(s[i], more)
	}
	if plain {
		return s
	}
	if s == "" {
		return "%-"
	}
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if clean(s[i], more) {
			b.WriteByte(s[i])
		} else {
			b.Write([]byte{'%', digits[s[i]>>4], digits[s[i]&15]})
		}
	}
	return b.String()
}

func clean(c byte, more string) bool {
	return c >= ' ' && c <= '~' && strings.IndexByte(more, c) < 0
}

// shorten returns s, or if it is too long its beginning, a mark and a hash of the
// whole, in most bytes at the most. A text that looks like such a one is long enough
// to be shortened itself, so no two texts become the same. Nothing is cut within a
// character.
func shorten(s string, most int, mark string) string {
	if len(s) <= most-utf8Max {
		return s
	}
	cut := most - sum - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	hash := sha256.Sum256([]byte(s))
	return s[:cut] + mark + hex.EncodeToString(hash[:])[:sum]
}
