package group

import "github.com/hashicorp/raft"

// Serving says whether this replica answers takes now: it leads, and has
// applied an entry of its term. It is cheap enough to ask before every Take.
func (r *Replica) Serving() bool { return r.servesNow() }

// Electorate is the ids of the voters that an election now would ask: those of
// the newest configuration in the log, committed or not, as raft counts. Status
// tells of the newest one applied, which followers learn of a while later.
func (r *Replica) Electorate() []string {
	rf := r.raft.Load()
	if rf == nil {
		return nil
	}
	f := rf.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	var ids []string
	for _, s := range f.Configuration().Servers {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}
