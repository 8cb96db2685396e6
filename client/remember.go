package client

import (
	"time"

	"github.com/ringlimit/ringlimit/client/internal/fallback"
)

// recalls ends a call that is answered by what the cluster has just told, if there is such
// an answer. Nobody else knows k yet.
func (c *Client) recalls(k *call) bool {
	if k.began == 0 || k.seq == 0 {
		return false
	}
	d, ok := c.denials.recall(k.body, k.began)
	if !ok || !k.settle(finished) {
		return false
	}
	*k.decision = d
	c.counts.remembered.Add(1)
	c.meters.rememberedOne()
	c.acks.end(k.seq)
	k.wake()
	return true
}

// rememberDenial keeps a denial of the cluster that the next call of the same request need
// not ask for. It counts from when the call began, so that it is over before the time that
// anybody was told: whoever comes back at his time is decided by the cluster.
func (c *Client) rememberDenial(k *call) {
	d, rules := k.decision, c.rules.Load()
	if c.denials.most == 0 || d.RetryAfter <= 0 || k.seq == 0 || k.began == 0 || k.request.Witness || len(k.body) > maxDenied || rules == nil {
		return
	}
	now := c.now()
	if !c.denials.hear(k.body, d.RetryAfter, k.began, now) {
		return
	}
	if stands := min(k.stands(rules), c.denials.most); stands > 0 {
		c.denials.remember(k.body, *d, now, k.began+int64(stands))
	}
}

// stands is for how long a denial holds whatever is spent: the longest wait of those that
// only time ends; 0: none.
func (k *call) stands(rules *fallback.Rules) (longest time.Duration) {
	q := k.request.policyRequest()
	for _, a := range k.decision.All() {
		if !a.Allowed && !a.Shadow && a.RetryAfter > longest && a.Reason == fallback.RateLimited && rules.Steady(q, a.PolicyID, a.PolicyVersion) {
			longest = a.RetryAfter
		}
	}
	return longest
}
