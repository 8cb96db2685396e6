package bucket

import "fmt"

// Validate says what is wrong with l, or nil. A table obeys only valid limits;
// others, which no policy produces, it reads as the nearest valid one.
func (l Limit) Validate() error {
	switch {
	case l.Algorithm != TokenBucket:
		return fmt.Errorf("algorithm %d is unknown", l.Algorithm)
	case l.Amount > MaxAmount:
		return fmt.Errorf("amount %d is above %d", l.Amount, uint64(MaxAmount))
	case l.Burst > MaxAmount:
		return fmt.Errorf("burst %d is above %d", l.Burst, uint64(MaxAmount))
	case l.Amount > 0 && l.Burst == 0:
		return fmt.Errorf("burst is 0 with amount %d: a burst of 1 … %d is needed", l.Amount, uint64(MaxAmount))
	case l.Window < MinWindow || l.Window > MaxWindow:
		return fmt.Errorf("window %d ns is outside %d … %d", l.Window, int64(MinWindow), int64(MaxWindow))
	}
	return nil
}

// Capacity is the most tokens the bucket can hold: the burst, and 0 with amount 0.
func (l Limit) Capacity() uint64 {
	if l.Amount == 0 {
		return 0
	}
	return l.Burst
}

// clamped is the valid limit nearest to l. Stored entries are read through it,
// so that the arithmetic behind can rely on its ranges.
func (l Limit) clamped() Limit {
	l.Amount = min(l.Amount, MaxAmount)
	l.Burst = min(l.Burst, MaxAmount)
	l.Window = min(max(l.Window, MinWindow), MaxWindow)
	return l
}
