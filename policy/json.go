package policy

import "encoding/json"

// MarshalJSON is Encode, so that a set can stand inside other documents.
func (s *Set) MarshalJSON() ([]byte, error) { return s.Encode(), nil }

// UnmarshalJSON reads the canonical form without judging it: call Validate. A
// word or field this build does not know is an error.
func (s *Set) UnmarshalJSON(data []byte) error { return s.decode(data) }

var (
	_ json.Marshaler   = (*Set)(nil)
	_ json.Unmarshaler = (*Set)(nil)
)
