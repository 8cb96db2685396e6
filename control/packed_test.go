package control

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

// file is a put of n policies, each of about size bytes.
func file(n, size int) PutPolicies {
	set := &policy.Set{Home: []string{"tenant"}, Omitted: []string{"home"}}
	for i := range n {
		p := count(fmt.Sprintf("tenant-%06d-payments", i), uint64(20+i%7))
		p.Match = policy.On("route", "POST:/v1/payments", "tenant", fmt.Sprintf("tenant-%06d", i))
		for k := 0; size > 270+60*k; k++ {
			p.Match = append(p.Match, policy.Condition{Name: fmt.Sprintf("attribute-%02d", k), Value: fmt.Sprintf("customer-%06d-of-shard-%02d-plan-%02d", i, i%97, (i+k)%13)})
		}
		set.Policies = append(set.Policies, p)
	}
	return PutPolicies{Set: set}
}

func TestLongCommandsArePacked(t *testing.T) {
	for n, want := range map[int]bool{1: false, 100: false, 5000: true} {
		c := file(n, 200)
		entry := Encode(c)
		if got := entry[0] == packed; got != want {
			t.Errorf("%d policies, %d bytes: packed %v", n, len(entry), got)
		}
		if got := EntryFormat(entry); want && got != 3 || !want && got != Format(c) {
			t.Errorf("%d policies have format %d", n, got)
		}
		back, err := Decode(entry)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.(*PutPolicies).Set; !bytes.Equal(got.Encode(), c.Set.Encode()) {
			t.Errorf("%d policies do not come back as they were", n)
		}
		if !bytes.Equal(Encode(back), entry) {
			t.Errorf("%d policies have two encodings", n)
		}
	}
}

// bomb claims a length and holds zeros.
func bomb(claims, holds int) []byte {
	var b bytes.Buffer
	b.Write(binary.AppendUvarint([]byte{packed}, uint64(claims)))
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	for zeros := make([]byte, 1<<20); holds > 0; holds -= len(zeros) {
		_, _ = w.Write(zeros[:min(holds, len(zeros))])
	}
	_ = w.Close()
	return b.Bytes()
}

func TestMalformedPackedEntriesAreRefused(t *testing.T) {
	good := Encode(file(5000, 200))
	nested := pack(append(bytes.Clone(good), make([]byte, packFrom)...))
	for name, c := range map[string]struct {
		entry []byte
		want  string
	}{
		"a bomb":              {bomb(1<<20, 50<<20), "another length"},
		"a bomb that says so": {bomb(1<<30, 1<<20), "at most"},
		"too short":           {bomb(1<<20, 1<<19), "another length"},
		"a tail":              {append(bytes.Clone(good), 0), "more after the end"},
		"cut":                 {good[:len(good)-9], "packed command"},
		"no length":           {[]byte{packed}, "packed command"},
		"an endless length":   {[]byte{packed, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, "packed command"},
		"packed twice":        {nested, "command version 128"},
		"nothing inside":      {bomb(0, 0), "empty command"},
		"zeros":               {bomb(packFrom, packFrom), "command version 0"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(c.entry)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s took %d MiB", name, took>>20)
		}
		if _, err := New().Apply(1, c.entry); err == nil {
			t.Errorf("%s is applied", name)
		}
	}
}

// TestFilesOfManyPoliciesFitIntoAnEntry: 100,000 policies take at most what a
// link carries in one frame, judged by a tenth of them.
func TestFilesOfManyPoliciesFitIntoAnEntry(t *testing.T) {
	for _, size := range []int{200, 1000} {
		c := file(many/10, size)
		entry := Encode(c)
		t.Logf("%d policies of %d bytes: an entry of %d KiB", many/10, len(c.Set.Encode())/(many/10), len(entry)>>10)
		if len(entry) > 12<<20/10 {
			t.Errorf("%d bytes, want at most a tenth of 12 MiB", len(entry))
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(bomb(100, 100))
	f.Add(Encode(file(1, 200)))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := unpack(data)
		if err == nil && len(out) > MaxUnpacked {
			t.Fatal(len(out))
		}
	})
}
