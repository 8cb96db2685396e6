package check

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Kind is what an operation asked for.
type Kind uint8

// The kinds. Acquire is a take from a concurrency limit.
const (
	Take Kind = iota
	Look
	Refund
	Acquire
	Renew
	Release
)

func (k Kind) String() string {
	return [...]string{"take", "look", "refund", "acquire", "renew", "release"}[min(k, Release)]
}

// Outcome is what became of the whole request.
type Outcome uint8

// The outcomes. Of a Refund, Renew or Release, Admitted means that it did
// something, Denied that there was nothing to give back, or no such permit.
const (
	Unknown  Outcome = iota // perhaps done, now or later
	Admitted                // charged, or charged before under its ID; of a Look: would pass
	Denied                  // an answer, and nothing charged
	Refused                 // an error that promises that nothing was charged
)

func (o Outcome) String() string {
	return [...]string{"unknown", "admitted", "denied", "refused"}[min(o, Refused)]
}

// Forever is the Return of an operation whose outcome is unknown: it may still
// come. Call and Return of any operation are times of the checker's own clock.
const Forever = time.Duration(math.MaxInt64)

// Never is the RetryAfter of a denial that no wait can cure.
const Never time.Duration = -1

// Op is what one request did to one bucket, as its caller saw it. A request under
// several limits is several operations with one Request number; its Outcome stands
// in each of them, and Passed is what the bucket said for itself.
type Op struct {
	Client  int
	Kind    Kind
	Bucket  string // name of what is counted: a key of Setup.Limits
	Request uint64 // equal for the operations of one answer, else unique; 0: an answer about this bucket alone
	ID      string // request id, equal for all copies of one logical request; empty: none, or known to nobody else
	Body    string // what was asked under the ID; copies with another one must be refused
	Cost    uint64 // tokens or permits; of a Refund at most this much of each limit, 0: all; 0 for a Look

	Call, Return time.Duration // Return is Forever if Outcome is Unknown
	Outcome      Outcome
	Code         string // of an error: as in the wire contract, in lower case without CODE_; see Codes

	Passed     bool // this bucket would have admitted
	Shadow     bool // counted, but its denial does not count
	Capacity   uint64
	Remaining  uint64
	ResetAfter time.Duration
	RetryAfter time.Duration // 0 when Passed; Never
	Delay      time.Duration
	Reason     string
	Policy     string
	Version    uint64 // of Policy; 0: no bucket was asked
	Permit     string // granted, or the one to renew or release
	Token      uint64 // fencing token of the permit
	Degraded   bool   // made without the cluster
	Leased     bool   // made from a lease: the numbers are those of its grant, and there is no Witness

	Witness Witness
}

// Witness says where in which log an answer was made. Index 0: not known.
type Witness struct {
	Group, Epoch uint32
	Term, Index  uint64
	Position     int // of the request in the entry, from 1; 0: not known
	SlotTime     time.Duration
	Uncommitted  bool // a denial or look at the applied state: Index is what was applied
	Repeated     bool // the answer of an earlier copy: SlotTime is of that, the rest of this
}

// charged says whether the cluster said that o took tokens or permits.
func (o *Op) charged() bool {
	return o.Outcome == Admitted && o.takes() && !o.Degraded && (!o.Shadow || o.Passed)
}

// maybe says whether o took tokens if the truth about it is the worse one.
func (o *Op) maybe() bool { return o.Outcome == Unknown && o.takes() && o.Cost > 0 }

func (o *Op) takes() bool { return o.Kind == Take || o.Kind == Acquire }

// answered says whether o has an answer by the cluster that tells of a bucket.
func (o *Op) answered() bool {
	return (o.Outcome == Admitted || o.Outcome == Denied) && !o.Degraded && o.Version > 0
}

// elsewhere says whether o was denied for what became of its id, not by its bucket.
func (o *Op) elsewhere() bool {
	return o.Reason == "refunded" || o.Reason == "denied_by_another_limit"
}

// precedes says whether o had returned before p was called.
func (o *Op) precedes(p *Op) bool { return o.Return < p.Call }

// String is o in one line.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%v", o.Call)
	if o.Return == Forever {
		b.WriteString(" …] ")
	} else {
		fmt.Fprintf(&b, " %v] ", o.Return)
	}
	fmt.Fprintf(&b, "client %d %v %d of %s", o.Client, o.Kind, o.Cost, o.Bucket)
	if o.ID != "" {
		fmt.Fprintf(&b, " id %s", o.ID)
	}
	fmt.Fprintf(&b, ": %v", o.Outcome)
	if o.Code != "" {
		b.WriteString(" " + o.Code)
	}
	if o.answered() {
		fmt.Fprintf(&b, " by version %d, %d left", o.Version, o.Remaining)
		if !o.Passed {
			fmt.Fprintf(&b, ", retry after %v", o.RetryAfter)
		}
	}
	if o.Token != 0 {
		fmt.Fprintf(&b, ", token %d", o.Token)
	}
	if o.Degraded {
		b.WriteString(", degraded")
	}
	if w := o.Witness; w.Index > 0 {
		fmt.Fprintf(&b, "; group %d.%d term %d index %d.%d at %v", w.Group, w.Epoch, w.Term, w.Index, w.Position, w.SlotTime)
		if w.Repeated {
			b.WriteString(" repeated")
		}
		if w.Uncommitted {
			b.WriteString(" uncommitted")
		}
	}
	return b.String()
}
