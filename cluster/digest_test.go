package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDigestRoundTrip(t *testing.T) {
	want := &digest{
		control: 7, stopping: true, draining: true, up: []string{"a", "bb"},
		replicas: []replicaDigest{
			{group: 1, epoch: 2, serial: 3, applied: 4, chain: 1 << 63, term: 6, lastTerm: 5, lastIndex: 12, leads: true, serving: true, buckets: 8, held: 9, time: 10, voters: []uint64{3, 4, 5}},
			{group: 2, epoch: 1, serial: 9},
		},
	}
	got, err := parseDigest(appendDigest(nil, want))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(digest{}, replicaDigest{})); d != "" {
		t.Error(d)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add(appendDigest(nil, &digest{up: []string{"a"}, replicas: []replicaDigest{{group: 1, voters: []uint64{1}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDigest(b)
		if err != nil {
			return
		}
		again, err := parseDigest(appendDigest(nil, d))
		if err != nil {
			t.Fatalf("a digest that was read cannot be read again: %v", err)
		}
		if diff := cmp.Diff(d, again, cmp.AllowUnexported(digest{}, replicaDigest{})); diff != "" {
			t.Error(diff)
		}
	})
}
