package bucket

// Outdated appends to dst those of rules of whose policy the table knows only an
// older version: the ones a CutoverEntry would make effective here.
func (t *Table) Outdated(rules, dst []Rule) []Rule {
	for i := range rules {
		if n := t.rules.newest[rules[i].Policy]; n != 0 && t.rules.list[n-1].Version < rules[i].Version {
			dst = append(dst, rules[i])
		}
	}
	return dst
}
