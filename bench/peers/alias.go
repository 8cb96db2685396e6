package main

// alias draws from a fixed distribution in constant time, by the alias method: each
// column holds its own number with some chance, else that of another.
type alias struct {
	chance []float32
	other  []uint32
}

// newAlias takes n weights.
func newAlias(n int, weight func(i int) float64) *alias {
	a := &alias{chance: make([]float32, n), other: make([]uint32, n)}
	scaled, sum := make([]float64, n), 0.0
	for i := range scaled {
		scaled[i] = weight(i)
		sum += scaled[i]
	}
	var small, large []uint32
	for i := range scaled {
		scaled[i] *= float64(n) / sum
		if scaled[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.chance[s], a.other[s] = float32(scaled[s]), l
		if scaled[l] -= 1 - scaled[s]; scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) { // what rounding has left
		a.chance[i], a.other[i] = 1, i
	}
	return a
}

// draw turns a random number into one of the distribution.
func (a *alias) draw(r uint64) uint64 {
	i := (r >> 32) * uint64(len(a.chance)) >> 32
	if float32(uint32(r))/(1<<32) < a.chance[i] {
		return i
	}
	return uint64(a.other[i])
}
