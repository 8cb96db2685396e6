package policy

// Value is what a valid request has for a name of a match or a scope, "" for nothing.
func (ix *Index) Value(r *Request, name string) string {
	v := ix.values(r)
	return v.get(termOf(name))
}
