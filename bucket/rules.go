package bucket

// rules numbers the rules that cells and results name, in order of first use.
// Numbers begin at 1; 0 is none. Rules are never forgotten: there is one for
// each version of each policy that ever charged a bucket here.
type rules struct {
	list    []Rule
	numbers map[Rule]uint32
}

func newRules(list []Rule) rules {
	r := rules{list: list, numbers: make(map[Rule]uint32, len(list))}
	for i, rule := range list {
		r.numbers[rule] = uint32(i + 1)
	}
	return r
}

// intern is the number of rule, given now if it has none.
func (r *rules) intern(rule Rule) uint32 {
	n, ok := r.numbers[rule]
	if !ok {
		r.list = append(r.list, rule)
		n = uint32(len(r.list))
		r.numbers[rule] = n
	}
	return n
}

// refer is the number of u's rule, given now if it has none.
func (r *rules) refer(u *use) uint32 {
	if u.ref == 0 {
		u.ref = r.intern(u.Rule)
	}
	return u.ref
}

// rule is the rule of a number. A number never given denies all.
func (r *rules) rule(n uint32) *Rule {
	if n == 0 || int(n) > len(r.list) {
		return &Rule{}
	}
	return &r.list[n-1]
}
