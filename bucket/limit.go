package bucket

import "fmt"

// Validate says what is wrong with l, or nil. A table obeys only valid limits;
// others, which no policy produces, it reads as the nearest valid one.
func (l Limit) Validate() error {
	switch {
	case !l.Algorithm.known():
		return fmt.Errorf("algorithm %d is unknown", uint8(l.Algorithm))
	case l.Amount > MaxAmount:
		return fmt.Errorf("amount %d is above %d", l.Amount, uint64(MaxAmount))
	case l.Burst > MaxAmount:
		return fmt.Errorf("burst %d is above %d", l.Burst, uint64(MaxAmount))
	case !l.Algorithm.HasBurst() && l.Burst != 0 && l.Burst != l.Amount:
		return fmt.Errorf("burst %d with amount %d: %v has no burst", l.Burst, l.Amount, l.Algorithm)
	case l.Algorithm.HasBurst() && l.Amount > 0 && l.Burst == 0:
		return fmt.Errorf("burst is 0 with amount %d: a burst of 1 … %d is needed", l.Amount, uint64(MaxAmount))
	case l.Window < MinWindow || l.Window > MaxWindow:
		return fmt.Errorf("window %d ns is outside %d … %d", l.Window, int64(MinWindow), int64(MaxWindow))
	}
	return nil
}

// Capacity is the largest cost that a fresh bucket admits: the burst where the
// algorithm has one, else the amount; 0 with amount 0.
func (l Limit) Capacity() uint64 {
	if l.Amount == 0 || l.Algorithm > LeakyBucket {
		return l.Amount
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
