package main

import (
	"math"
	"testing"
)

func TestAliasDrawsByWeight(t *testing.T) {
	weights := []float64{1, 2, 3, 4, 0}
	a := newAlias(len(weights), func(i int) float64 { return weights[i] })
	const draws = 200_000
	var got [5]int
	for i := range uint64(draws) {
		got[a.draw(mix(i))]++
	}
	for i, w := range weights {
		if want := w / 10; math.Abs(float64(got[i])/draws-want) > 0.005 {
			t.Errorf("%d was drawn %.4f of the time, want %.4f", i, float64(got[i])/draws, want)
		}
	}
}

func TestTrafficKeepsItsShareAndItsKeys(t *testing.T) {
	const keys, asks = 5000, 100_000
	for _, kind := range []Kind{Uniform, Zipf, Hot, Abusive, Mixed} {
		tr, err := newTraffic(kind, keys, 7)
		if err != nil {
			t.Fatal(err)
		}
		spent, seen := 0, map[Ask]int{}
		for i := range int64(asks) {
			a := tr.at(i)
			if a.Spent {
				spent++
			}
			if a != tr.at(i) {
				t.Fatalf("%s: position %d is not always the same", kind, i)
			}
			if most := uint64(keys); a.Key >= most || a.Spent && a.Key >= abusers {
				t.Fatalf("%s: %+v", kind, a)
			}
			seen[a]++
		}
		if got := 1 - float64(spent)/asks; math.Abs(got-kind.share()) > 0.005 {
			t.Errorf("%s: %.3f are to be admitted, want %.3f", kind, got, kind.share())
		}
		if kind == Hot && len(seen) != 1 || kind == Uniform && len(seen) < keys*99/100 {
			t.Errorf("%s: %d keys", kind, len(seen))
		}
	}
}

// TestZipfHasItsHead: key 0 comes as often as its weight among all says.
func TestZipfHasItsHead(t *testing.T) {
	const keys, asks = 1000, 200_000
	tr, err := newTraffic(Zipf, keys, 1)
	if err != nil {
		t.Fatal(err)
	}
	whole, first, tenth := 0.0, 0.0, 0.0
	for i := range keys {
		whole += math.Pow(float64(i+1), -1.1)
	}
	for i := range int64(asks) {
		switch tr.at(i).Key {
		case 0:
			first++
		case 9:
			tenth++
		}
	}
	if want := 1 / whole; math.Abs(first/asks-want) > 0.005 {
		t.Errorf("the first key is %.4f of all, want %.4f", first/asks, want)
	}
	if want := math.Pow(10, -1.1); math.Abs(tenth/first-want) > 0.01 {
		t.Errorf("the tenth key comes %.3f as often as the first, want %.3f", tenth/first, want)
	}
}

func TestFillTouchesEveryKeyOnce(t *testing.T) {
	const keys = 3000
	tr, err := newTraffic(Fill, keys, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range filling(keys) {
		name := tr.at(i).name()
		if seen[name] {
			t.Fatalf("%s twice", name)
		}
		seen[name] = true
	}
	for _, kind := range []Kind{Uniform, Zipf, Hot, Abusive, Mixed} {
		other, err := newTraffic(kind, keys, 3)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(20_000) {
			if name := other.at(i).name(); !seen[name] {
				t.Fatalf("%s asks for %s, which filling has not touched", kind, name)
			}
		}
	}
}
