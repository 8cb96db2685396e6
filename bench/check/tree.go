package check

import "math"

// tree is numbers to which ranges are added, and of which the largest before some
// place is asked for. Both take log n steps.
type tree struct {
	n     int
	best  []float64 // of a node's range, with what was added to it as a whole …
	added []float64 // … which its children do not have
}

func newTree(n int) *tree {
	size := 1
	for size < n {
		size *= 2
	}
	t := &tree{n: size, best: make([]float64, 2*size), added: make([]float64, 2*size)}
	for i := n; i < size; i++ {
		t.best[size+i] = math.Inf(-1)
	}
	for i := size - 1; i > 0; i-- {
		t.best[i] = max(t.best[2*i], t.best[2*i+1])
	}
	return t
}

// add adds x to the numbers in [from, to).
func (t *tree) add(from, to int, x float64) { t.addIn(1, 0, t.n, from, to, x) }

func (t *tree) addIn(node, low, high, from, to int, x float64) {
	switch {
	case to <= low || high <= from:
	case from <= low && high <= to:
		t.best[node] += x
		t.added[node] += x
	default:
		mid := (low + high) / 2
		t.addIn(2*node, low, mid, from, to, x)
		t.addIn(2*node+1, mid, high, from, to, x)
		t.best[node] = max(t.best[2*node], t.best[2*node+1]) + t.added[node]
	}
}

// most is the largest number before place to, and where it is.
func (t *tree) most(to int) (x float64, at int) { return t.mostIn(1, 0, t.n, to) }

func (t *tree) mostIn(node, low, high, to int) (float64, int) {
	switch {
	case to <= low:
		return math.Inf(-1), 0
	case high-low == 1:
		return t.best[node], low
	}
	mid := (low + high) / 2
	if high <= to { // the whole node: go where its best is
		if t.best[2*node] >= t.best[2*node+1] {
			x, at := t.mostIn(2*node, low, mid, to)
			return x + t.added[node], at
		}
		x, at := t.mostIn(2*node+1, mid, high, to)
		return x + t.added[node], at
	}
	x, at := t.mostIn(2*node, low, mid, to)
	if y, there := t.mostIn(2*node+1, mid, high, to); y > x {
		x, at = y, there
	}
	return x + t.added[node], at
}

// fenwick is counts of which the sum before some place is asked for.
type fenwick []uint64

func newFenwick(n int) fenwick { return make(fenwick, n+1) }

func (f fenwick) add(at int, x uint64) {
	for i := at + 1; i < len(f); i += i & -i {
		f[i] += x
	}
}

// sum is that of the counts before place to.
func (f fenwick) sum(to int) (x uint64) {
	for i := to; i > 0; i -= i & -i {
		x += f[i]
	}
	return x
}
