package policy

import "time"

// OnUnavailable says what a caller does when the limiter is out of reach: at
// once when no node can be reached, else when After has passed unanswered.
type OnUnavailable struct {
	Mode  FailureMode
	After time.Duration // 1 ms … 1 h; 0: DefaultAfter; AfterDeadline: the caller's own deadline
	For   time.Duration // with Open only: how long it stays open; 0: DefaultOpen
	Then  FailureMode   // with Open only: Local or Closed, once For has passed
}

// The defaults and bounds of OnUnavailable.
const (
	DefaultAfter  = 50 * time.Millisecond
	AfterDeadline = time.Duration(-1)
	DefaultOpen   = 2 * time.Minute

	minAfter = time.Millisecond
	maxAfter = time.Hour
	maxOpen  = 366 * 24 * time.Hour
)

// normal fills in the defaults.
func (u OnUnavailable) normal() OnUnavailable {
	if u.After == 0 {
		u.After = DefaultAfter
	}
	if u.Mode == Open && u.For == 0 {
		u.For = DefaultOpen
	}
	return u
}

// At is the mode once the limiter has been out of reach for some time.
func (u OnUnavailable) At(lasted time.Duration) FailureMode {
	if u = u.normal(); u.Mode == Open && lasted >= u.For {
		return u.Then
	}
	return u.Mode
}

// check says what is wrong with u; path is that of the field it stands in.
func (u OnUnavailable) check(path string) error {
	u = u.normal()
	switch {
	case !failureModes.has(uint8(u.Mode)):
		return invalid(path+".mode", "%s, want %s", u.Mode, failureModes)
	case u.After != AfterDeadline && (u.After < minAfter || u.After > maxAfter):
		return invalid(path+".after", "%v, want %v … %v or deadline", u.After, minAfter, maxAfter)
	case u.Mode != Open && u.For != 0:
		return invalid(path+".for", "given with mode %s, want it with mode open only", u.Mode)
	case u.Mode != Open && u.Then != Local:
		return invalid(path+".then", "given with mode %s, want it with mode open only", u.Mode)
	case u.Mode == Open && (u.For < minAfter || u.For > maxOpen):
		return invalid(path+".for", "%v, want %v … %v", u.For, minAfter, maxOpen)
	case u.Mode == Open && u.Then != Local && u.Then != Closed:
		return invalid(path+".then", "%s, want local or closed", u.Then)
	}
	return nil
}

// afterText is After as a file writes it.
func (u OnUnavailable) afterText() string {
	if u.After == AfterDeadline {
		return "deadline"
	}
	return u.normal().After.String()
}
