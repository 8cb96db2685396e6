package control

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/policy"
)

// large is a machine with n policies, each for a tenant of its own.
func large(t testing.TB, n int) (*Machine, []byte) {
	set := &policy.Set{Home: []string{"tenant"}, Omitted: []string{"home", "no_match", "route_classes"}}
	for i := range n {
		p := count(fmt.Sprintf("tenant-%06d-payments", i), uint64(20+i%7))
		p.Match = policy.On("route", "POST:/v1/payments", "tenant", fmt.Sprintf("tenant-%06d", i))
		p.Source = fmt.Sprintf("policies.yaml:%d", 7*i+3)
		set.Policies = append(set.Policies, p)
	}
	m := New()
	c := founding()
	c.Policies = nil
	put := Encode(PutPolicies{Set: set})
	for i, entry := range [][]byte{Encode(c), put} {
		if r, err := m.Apply(uint64(i+1), entry); err != nil || r.Err != nil {
			t.Fatal(r.Err, err)
		}
	}
	return m, put
}

const many = 100_000

func BenchmarkApplyPutOfOneAmongMany(b *testing.B) {
	m, _ := large(b, many)
	p := *m.State().Policies.Policies[many/2]
	index := uint64(2)
	for b.Loop() {
		index++
		p.Limit.Amount = index
		if r, err := m.Apply(index, Encode(PutPolicy{Policy: &p})); err != nil || r.Err != nil {
			b.Fatal(r.Err, err)
		}
	}
}

func BenchmarkApplyPutOfManyUnchanged(b *testing.B) {
	m, put := large(b, many)
	for b.Loop() {
		if r, err := m.Apply(3, put); err != nil || r.Err != nil || r.Changed {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkSnapshotOfMany(b *testing.B) {
	m, _ := large(b, many)
	for b.Loop() {
		b.SetBytes(int64(len(m.Snapshot())))
	}
}

func BenchmarkRestoreOfMany(b *testing.B) {
	m, _ := large(b, many)
	data := m.Snapshot()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := New().Restore(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFollowOneAmongMany is what a node does for each change: the index
// and the rules to cut over to.
func BenchmarkFollowOneAmongMany(b *testing.B) {
	m, _ := large(b, many)
	old := m.State()
	index, err := policy.Compile(old.Policies, policy.Keys{Slots: 1024})
	if err != nil {
		b.Fatal(err)
	}
	p := *old.Policies.Policies[many/2]
	at := uint64(2)
	for b.Loop() {
		at++
		p.Limit.Amount = at
		b.StopTimer()
		if _, err := m.Apply(at, Encode(PutPolicy{Policy: &p})); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		next := m.State()
		if index, err = index.Update(next.Policies); err != nil {
			b.Fatal(err)
		}
		if rules := policy.Rules(old.Policies, next.Policies, next.PolicyVersion); len(rules) != 1 {
			b.Fatal(len(rules))
		}
		old = next
	}
}

// TestHundredThousandPoliciesFit: state and index of a node take 100 MB at most.
func TestHundredThousandPoliciesFit(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a few seconds")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	m, _ := large(t, many)
	index, err := policy.Compile(m.State().Policies, policy.Keys{Slots: 1024})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := after.HeapAlloc - before.HeapAlloc
	t.Logf("%d MiB held, put and compiled in %v", held>>20, took)
	if held > 100_000_000 {
		t.Errorf("%d bytes held, want at most 100 MB", held)
	}
	runtime.KeepAlive(index)
	runtime.KeepAlive(m)
}

func BenchmarkDecodeMany(b *testing.B) {
	_, put := large(b, many)
	for b.Loop() {
		if _, err := Decode(put); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeMany(b *testing.B) {
	_, put := large(b, many)
	c, err := Decode(put)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Encode(c)
	}
}

func BenchmarkApplyPutOfMany(b *testing.B) {
	_, put := large(b, many)
	c := founding()
	c.Policies = nil
	found := Encode(c)
	for b.Loop() {
		m := New()
		for i, entry := range [][]byte{found, put} {
			if r, err := m.Apply(uint64(i+1), entry); err != nil || r.Err != nil {
				b.Fatal(r.Err, err)
			}
		}
	}
}
