package cluster

import "runtime"

// turns bounds how many messages are worked at in the same moment, not those that wait
// for a commit: as many as there are processors. More would not be faster, and whatever
// is woken meanwhile, such as raft and the answer to another node's ping, would wait
// until each of them had its time of a processor: with many messages the node would
// look dead to the others.
type turns chan struct{}

func newTurns() turns { return make(turns, runtime.GOMAXPROCS(0)) }

// begin waits for a turn. Nothing that may wait for another message may be done in it.
func (t turns) begin() { t <- struct{}{} }

func (t turns) end() { <-t }
