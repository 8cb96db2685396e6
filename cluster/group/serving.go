package group

// Serving says whether this replica answers takes now: it leads, and has
// applied an entry of its term. It is cheap enough to ask before every Take.
func (r *Replica) Serving() bool { return r.servesNow() }
