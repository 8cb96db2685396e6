package main

import (
	"sync"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/policy"
)

// limits are those of the plans, as the policy file of the scenarios has them: each
// plan has one policy, of its own name.
var limits = sync.OnceValue(func() map[string]check.Limit {
	set, err := policy.Parse("policies.yaml", policies)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it too
	}
	by := make(map[string]check.Limit, len(set.Policies))
	for _, p := range set.Policies {
		by[p.ID] = p.Limit
	}
	return by
})

// ops is the history of a key for the checkers: unit takes, each retried under an id
// that only the client library knows.
func (k key) ops(recs []record) []check.Op {
	ops := make([]check.Op, 0, len(recs))
	for i := range recs {
		r := &recs[i]
		o := check.Op{Client: i, Kind: check.Take, Bucket: k.tenant, Cost: 1, Call: r.call, Return: r.ret}
		ops = append(ops, check.Answered(o, &r.ans, r.err, nil)...)
	}
	return ops
}

// broken is what checkers of a key's history found. recs must be all of it.
func (k key) broken(s check.Setup, recs []record) (broken []string) {
	s.Limits, s.Strict = map[string]check.Limit{k.tenant: limits()[k.plan]}, true
	for _, f := range check.Findings(check.All(&s, k.ops(recs))) {
		broken = append(broken, f.Explain())
	}
	return broken
}

// judgeExact applies every checker to a bucket without refill: each take must have
// got its answer, and as many are admitted as there are tokens.
func (a *arena) judgeExact(where string, k key, recs []record) {
	a.report.violate(where, k.broken(check.Setup{Exactly: []string{k.tenant}}, recs)...)
}

// judge applies every checker that allows for takes without an answer.
func (a *arena) judge(where string, k key, recs []record) {
	a.report.violate(where, k.broken(check.Setup{}, recs)...)
}
