package policy

import (
	"maps"
	"math/bits"

	"github.com/ringlimit/ringlimit/bucket"
)

// Cost is how many tokens one unit of a request's own cost takes: by the
// request's route class, else Default. Each is 1 … bucket.MaxAmount; the zero
// Cost is 1 for all.
type Cost struct {
	Default uint64            // 0: 1
	Classes map[string]uint64 // by route class
}

// of returns the cost of one unit for a request of a route class.
func (c *Cost) of(class string) uint64 {
	if len(c.Classes) > 0 {
		if n, ok := c.Classes[class]; ok {
			return n
		}
	}
	return max(c.Default, 1)
}

// times multiplies two costs and stops at bucket.MaxAmount, which no burst exceeds.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return bucket.MaxAmount
	}
	return min(lo, bucket.MaxAmount)
}

func (c Cost) normal() Cost {
	c.Default = max(c.Default, 1)
	if len(c.Classes) == 0 {
		c.Classes = nil
	}
	return c
}

func (c Cost) same(d Cost) bool { return c.Default == d.Default && maps.Equal(c.Classes, d.Classes) }
