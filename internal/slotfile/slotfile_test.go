package slotfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

type record struct {
	kind Kind
	body string
}

var sample = []record{{Header, `{"a":1}`}, {Slot, "one"}, {Chunk, "x"}, {Chunk, ""}, {Slot, "two"}, {Chunk, "yyyy"}}

func encode(t testing.TB, records []record) []byte {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, r := range records {
		if err := w.Write(r.kind, []byte(r.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if w.Bytes() != int64(b.Len()) {
		t.Errorf("%d bytes counted, %d written", w.Bytes(), b.Len())
	}
	return b.Bytes()
}

// read returns the records before the end or the error.
func read(b []byte) (got []record, offsets []int64, err error) {
	r, err := NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, nil, err
	}
	for {
		at := r.Offset()
		kind, body, err := r.Next()
		if err == io.EOF {
			return got, offsets, nil
		}
		if err != nil {
			return got, offsets, err
		}
		got = append(got, record{kind, string(body)})
		offsets = append(offsets, at)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	b := encode(t, sample)
	got, offsets, err := read(b)
	if err != nil || len(got) != len(sample) {
		t.Fatal(got, err)
	}
	for i := range got {
		if got[i] != sample[i] {
			t.Errorf("record %d: %v, want %v", i, got[i], sample[i])
		}
	}
	p := NewPart(bytes.NewReader(b[offsets[1]:offsets[4]]))
	for _, want := range sample[1:4] {
		if kind, body, err := p.Next(); err != nil || kind != want.kind || string(body) != want.body {
			t.Errorf("part: %d %q %v, want %v", kind, body, err, want)
		}
	}
	if _, _, err := p.Next(); err != io.EOF {
		t.Errorf("end of a part: %v", err)
	}
}

func TestWrongFilesAreToldApart(t *testing.T) {
	b := encode(t, sample)
	for n := 1; n < len(b); n++ {
		if _, _, err := read(b[:n]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("%d of %d bytes: %v, want cut off", n, len(b), err)
		}
	}
	for i := len(magic) + 1; i < len(b); i++ {
		bad := bytes.Clone(b)
		bad[i] ^= 0x40
		if _, _, err := read(bad); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTruncated) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
	newer := bytes.Clone(b)
	newer[len(magic)]++
	for _, c := range []struct {
		file []byte
		want error
	}{
		{nil, ErrForeign},
		{[]byte("policies:\n- id: x\n"), ErrForeign},
		{newer, ErrVersion},
		{append(bytes.Clone(b), 0), ErrDamaged},
		{encode(t, sample[1:]), ErrDamaged},
		{encode(t, []record{sample[0], sample[0]}), ErrDamaged},
	} {
		if _, _, err := read(c.file); !errors.Is(err, c.want) {
			t.Errorf("%.20q: %v, want %v", c.file, err, c.want)
		}
	}
}

func TestFileAppearsWholeOrNotAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(text string, commit bool) {
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Abort()
		_, _ = f.Write([]byte(text))
		if commit {
			if err := f.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("one", true)
	write("two", false)
	if b, err := os.ReadFile(path); err != nil || string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := os.Stat(path + AsideSuffix); !os.IsNotExist(err) {
		t.Errorf("what was written aside: %v", err)
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", i.Mode(), err)
	}
}

// FuzzReader: whatever a file holds, reading it ends without a panic, and what is
// read to the end is written as the same bytes.
func FuzzReader(f *testing.F) {
	f.Add(encode(f, sample))
	f.Add(encode(f, sample[:1]))
	f.Add([]byte(magic + "\x01\x01\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _, err := read(b)
		if err == nil && !bytes.Equal(encode(t, got), b) {
			t.Errorf("%d records are not the file", len(got))
		}
	})
}
