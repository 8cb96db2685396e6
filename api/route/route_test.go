package route

import (
	"encoding/hex"
	"fmt"
	"testing"
)

func testKey(t testing.TB) []byte {
	key, err := hex.DecodeString("000102030405060708090a0b0c0d0e0f")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestSlotsNeverChange pins slots: clients and nodes of all versions must agree.
func TestSlotsNeverChange(t *testing.T) {
	h, ok := New(testKey(t), 1024)
	if !ok {
		t.Fatal("New refused")
	}
	for _, c := range []struct {
		fields []string
		want   uint16
	}{
		{[]string{"acme"}, 758},
		{[]string{"acme", "key-1"}, 821},
		{[]string{""}, 467},
		{nil, 457}, // the reference vector 0x726fdb47dd0e0e31
	} {
		var b []byte
		for _, f := range c.fields {
			b = Append(b, f)
		}
		if got := h.Slot(b); got != c.want {
			t.Errorf("slot of %q is %d, want %d", c.fields, got, c.want)
		}
	}
}

func TestFieldsAreUnambiguous(t *testing.T) {
	encode := func(fields ...string) string {
		var b []byte
		for _, f := range fields {
			b = Append(b, f)
		}
		return string(b)
	}
	seen := map[string][]string{}
	for _, fields := range [][]string{{"a_b", "c"}, {"a", "b_c"}, {"a_bc"}, {"a_b", "", "c"}, {"", "a_b", "c"}, {"a", "_", "b", "c"}, {}, {""}} {
		e := encode(fields...)
		if other, ok := seen[e]; ok {
			t.Errorf("%q and %q are encoded alike", fields, other)
		}
		seen[e] = fields
	}
}

func TestKeyAndSlotsAreChecked(t *testing.T) {
	for _, c := range []struct {
		key   int
		slots int
		ok    bool
	}{{16, 1, true}, {16, 1024, true}, {16, 65536, true}, {16, 0, false}, {16, -1, false}, {16, 65537, false}, {15, 1024, false}, {17, 1024, false}, {0, 1024, false}} {
		if _, ok := New(make([]byte, c.key), c.slots); ok != c.ok {
			t.Errorf("key of %d bytes, %d slots: ok is %v", c.key, c.slots, ok)
		}
	}
}

// TestSlotsAreEven draws 100 keys a slot: six standard deviations is 60.
func TestSlotsAreEven(t *testing.T) {
	for _, slots := range []int{1, 3, 1000, 1024} {
		h, _ := New(testKey(t), slots)
		count := make([]int, slots)
		for i := range 100 * slots {
			count[h.Slot(Append(nil, fmt.Sprintf("tenant-%d", i)))]++
		}
		for slot, n := range count {
			if n < 40 || n > 160 {
				t.Errorf("slot %d of %d has %d of 100 keys", slot, slots, n)
			}
		}
	}
}

// TestKeyDecides: another key, other slots, so that nobody outside can aim at one.
func TestKeyDecides(t *testing.T) {
	a, _ := New(testKey(t), 1024)
	b, _ := New(make([]byte, KeySize), 1024)
	same := 0
	for i := range 1000 {
		f := Append(nil, fmt.Sprintf("tenant-%d", i))
		if a.Slot(f) == b.Slot(f) {
			same++
		}
	}
	if same > 20 {
		t.Errorf("%d of 1000 slots agree under different keys", same)
	}
}

func BenchmarkSlot(b *testing.B) {
	h, _ := New(testKey(b), 1024)
	var buf [64]byte
	for b.Loop() {
		h.Slot(Append(buf[:0], "tenant-4711"))
	}
}
