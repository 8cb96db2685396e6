package check

import (
	"strings"

	"github.com/anishathalye/porcupine"
)

// linearState is what is left, and what each id that has copies was answered:
// comparable, so that equal states are seen to be equal.
type linearState struct {
	left    uint64
	answers string
}

const answerSize = 5 // 0, or 1 and what was left

// linearModel is a bucket without refill from outside, with what may have been left
// at its start. Of ids with one copy nothing
// need be kept.
func linearModel(start []uint64, ops []Op) porcupine.Model {
	number := make(map[string]int)
	for id, many := range copied(ops) {
		if many {
			number[id] = len(number)
		}
	}
	empty := strings.Repeat("\x00", answerSize*len(number))
	model := porcupine.NondeterministicModel{
		Init: func() (states []any) {
			for _, n := range start {
				states = append(states, linearState{n, empty})
			}
			return states
		},
		Step: func(state, in, _ any) []any {
			s, o := state.(linearState), in.(*Op)
			at, copied := number[o.ID]
			copied = copied && o.ID != "" && o.Kind != Look
			next, admitted, remaining := s.take(o, at, copied)
			if o.Outcome == Unknown {
				if next == s {
					return []any{s}
				}
				return []any{s, next}
			}
			if admitted != o.Passed || remaining != o.Remaining {
				return nil
			}
			return []any{next}
		},
	}
	return model.ToModel()
}

// take is the state after o, and its answer.
func (s linearState) take(o *Op, at int, copied bool) (next linearState, admitted bool, remaining uint64) {
	if copied && s.answers[answerSize*at] != 0 {
		b := s.answers[answerSize*at:]
		return s, true, uint64(b[1])<<24 | uint64(b[2])<<16 | uint64(b[3])<<8 | uint64(b[4])
	}
	if s.left < max(o.Cost, 1) {
		return s, false, s.left
	}
	if o.Outcome == Denied { // by another limit of the same request
		return s, true, s.left
	}
	next = s
	next.left -= o.Cost
	if copied {
		n := next.left
		next.answers = s.answers[:answerSize*at] + string([]byte{1, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + s.answers[answerSize*(at+1):]
	}
	return next, true, next.left
}
