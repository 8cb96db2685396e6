package fleet

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"
)

// stream is a hello that opens a link, and frames of these kinds.
func stream(purpose byte, kinds ...byte) []byte {
	hello := append([]byte(helloMagic), 1, purpose, 0, 0)
	b := binary.LittleEndian.AppendUint16(nil, uint16(len(hello)))
	b = append(b, hello...)
	for i, k := range kinds {
		b = binary.LittleEndian.AppendUint32(b, uint32(1+i))
		b = append(append(b, k), bytes.Repeat([]byte{byte(i)}, i)...)
	}
	return b
}

// feedAll cuts a stream that comes in reads of n bytes.
func feedAll(data []byte, n int, single bool) (pieces []piece) {
	link := false
	s := splitter{link: func() bool { return link }, hello: func(b []byte) { link = opensLink(b) }}
	for chunk := range slices.Chunk(data, n) {
		pieces = append(pieces, s.feed(chunk, single)...)
	}
	return append(pieces, s.flush()...)
}

// TestSplitterLosesNothing, however a stream is cut into reads, and repeats requests
// alone.
func TestSplitterLosesNothing(t *testing.T) {
	data := stream(linkByte, 1, 4, 8, 13, 2, 3)
	for n := 1; n <= len(data); n++ {
		pieces := feedAll(data, n, true)
		var all []byte
		repeatable := 0
		for _, p := range pieces {
			all = append(all, p.data...)
			if p.repeatable {
				repeatable++
				if k := p.data[frameHead]; k != 4 && k != 13 && k != 3 {
					t.Errorf("reads of %d: kind %d may be repeated", n, k)
				}
			}
		}
		if !bytes.Equal(all, data) {
			t.Fatalf("reads of %d: %d bytes came out of %d", n, len(all), len(data))
		}
		if repeatable != 3 {
			t.Errorf("reads of %d: %d requests found, want 3", n, repeatable)
		}
	}
}

func TestSplitterLeavesOtherStreamsAlone(t *testing.T) {
	data := stream(2, 4, 4)
	for _, p := range feedAll(data, 7, true) {
		if p.repeatable {
			t.Error("a piece of a snapshot may be repeated")
		}
	}
}

// TestShape: what is delayed, dropped and copied, at the extremes.
func TestShape(t *testing.T) {
	now := time.Now()
	var none *Shape
	if none.due(now) != now || none.copies(now) != nil || none.drops() {
		t.Error("no shape does something")
	}
	s := &Shape{Delay: time.Second, Twice: 1, Again: 1, Later: time.Second, Lost: 1}
	if s.due(now) != now.Add(time.Second) || !s.drops() {
		t.Error("neither slow nor lossy")
	}
	copies := s.copies(now)
	if len(copies) != 2 || copies[0] != now || copies[1].Before(now) || copies[1].After(now.Add(time.Second)) {
		t.Errorf("copies at %v", copies)
	}
}
