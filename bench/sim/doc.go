// Package sim breaks a cluster in a synctest bubble: real nodes with raft, gossip and
// links, and the real client, on a network in memory, in virtual time. A seed decides
// how many nodes there are, what is asked of them, and what breaks when; at the end
// all heals, and the checkers of bench/check judge every answer.
//
//	make chaos-sim SEEDS=200            # from seed 1; FROM=N begins elsewhere
//	make chaos-sim SEEDS=1 FROM=17      # one seed
//
// All of it is tests, because a bubble is one. How it is laid out: plan (a seed as a
// list of decisions, pure); world, lives, seams and status (the nodes); nemesis, cuts,
// links, members and sequences (what breaks); wire (requests between nodes that come
// twice and late); work, works, ask, heir and change (what is asked, and the history);
// judge (what must hold); seeds (many of them, and what to do with one that fails);
// liveness (one fault that stays); narrow (given faults under given loads).
//
// Runs of one seed are alike and not the same: the runtime picks among ready cases of
// a select at random. A seed that fails is run again a few times, to say how often it
// does. The helpers of package cluster's own tests are not shared: those look inside
// a node, and a package that imports cluster cannot be imported by cluster's tests.
package sim
