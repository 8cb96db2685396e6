package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/bucket"
)

// Mode says what a policy does.
type Mode uint8

// The modes.
const (
	Enforce  Mode = iota
	Shadow        // counts and reports, never denies
	Disabled      // never applies
)

// Consistency says who may spend a policy's tokens.
type Consistency uint8

// The consistencies.
const (
	Strict Consistency = iota // the leader alone
	Leased                    // a client too, from tokens handed to it for a bounded time
)

// StateLoss says how full an absent bucket is once a group has lost its state for good.
type StateLoss uint8

// The ways to start again.
const (
	Empty   StateLoss = iota // empty at the start of the epoch, for a full refill time
	Salvage                  // what a survivor or checkpoint knows, else empty
	Full
)

// Loss is the same in the words of a bucket's rule.
func (l StateLoss) Loss() bucket.Loss {
	switch l {
	case Salvage:
		return bucket.LossSalvage
	case Full:
		return bucket.LossFull
	default:
		return bucket.LossEmpty
	}
}

// FailureMode is what a caller does when the limiter is out of reach.
type FailureMode uint8

// The failure modes.
const (
	Local  FailureMode = iota // a share of the limit, decided in the caller
	Closed                    // deny
	Open                      // allow, for a bounded time
)

// The words for them in files and JSON, indexed by value.
var (
	actions       = words{Allow: "allow", Deny: "deny"}
	modes         = words{Enforce: "enforce", Shadow: "shadow", Disabled: "disabled"}
	consistencies = words{Strict: "strict", Leased: "leased"}
	stateLosses   = words{Empty: "empty", Salvage: "salvage", Full: "full"}
	failureModes  = words{Local: "local", Closed: "closed", Open: "open"}
)

func (a Action) String() string      { return actions.of(uint8(a)) }
func (m Mode) String() string        { return modes.of(uint8(m)) }
func (c Consistency) String() string { return consistencies.of(uint8(c)) }
func (l StateLoss) String() string   { return stateLosses.of(uint8(l)) }
func (f FailureMode) String() string { return failureModes.of(uint8(f)) }

// words name the values 0, 1, … of one kind.
type words []string

func (w words) of(v uint8) string {
	if int(v) < len(w) {
		return w[v]
	}
	return fmt.Sprintf("%d, which is none", v)
}

func (w words) parse(text string) (uint8, bool) {
	i := slices.Index(w, text)
	return uint8(max(i, 0)), i >= 0
}

func (w words) has(v uint8) bool { return int(v) < len(w) }

// String lists the words: "a, b or c".
func (w words) String() string { return either(w) }

// either lists texts as alternatives.
func either(texts []string) string {
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}
