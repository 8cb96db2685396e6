package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// drawn fills every exported field of a message of raft with drawn values, so that
// a field that a newer raft adds is not forgotten here.
func drawn(t *rapid.T, v reflect.Value, id []byte) {
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch name {
		case "RPCHeader":
			f.Set(reflect.ValueOf(header(id)))
			continue
		case "Leader", "Candidate":
			f.SetBytes(id)
			continue
		case "Peers": // protocol 0
			continue
		case "Type":
			f.SetUint(uint64(rapid.SampledFrom([]raft.LogType{raft.LogCommand, raft.LogNoop, raft.LogBarrier}).Draw(t, name)))
			continue
		case "Configuration":
			f.SetBytes(raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "x", Address: "y"}}}))
			continue
		}
		switch f.Interface().(type) {
		case uint64:
			f.SetUint(rapid.Uint64().Draw(t, name))
		case int64:
			f.SetInt(rapid.Int64Min(0).Draw(t, name))
		case raft.SnapshotVersion:
			f.SetInt(1)
		case bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		case []byte:
			if b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name); len(b) > 0 {
				f.SetBytes(b)
			}
		case time.Time:
			if at := rapid.Int64().Draw(t, name); at != 0 {
				f.Set(reflect.ValueOf(time.Unix(0, at)))
			}
		case []*raft.Log:
			for range rapid.IntRange(0, 5).Draw(t, name) {
				var l raft.Log
				drawn(t, reflect.ValueOf(&l).Elem(), id)
				f.Set(reflect.Append(f, reflect.ValueOf(&l)))
			}
		default:
			t.Fatalf("raft has a field of a new type: %s %s", name, f.Type())
		}
	}
}

func TestRaftMessagesSurviveTheWire(t *testing.T) {
	id := []byte("a/1/g/1/1")
	rapid.Check(t, func(t *rapid.T) {
		same := func(sent, got any, ok bool) {
			if !ok {
				t.Fatalf("%T: not decoded", sent)
			}
			if d := cmp.Diff(sent, got); d != "" {
				t.Fatalf("%T: %s", sent, d)
			}
		}
		var app raft.AppendEntriesRequest
		drawn(t, reflect.ValueOf(&app).Elem(), id)
		gotApp, ok := decodeAppend(appendAppend(nil, &app), id)
		same(&app, gotApp, ok)

		var vote raft.RequestVoteRequest
		drawn(t, reflect.ValueOf(&vote).Elem(), id)
		gotVote, ok := decodeVote(appendVote(nil, &vote), id)
		same(&vote, gotVote, ok)

		var pre raft.RequestPreVoteRequest
		drawn(t, reflect.ValueOf(&pre).Elem(), id)
		gotPre, ok := decodePreVote(appendPreVote(nil, &pre), id)
		same(&pre, gotPre, ok)

		var snap raft.InstallSnapshotRequest
		drawn(t, reflect.ValueOf(&snap).Elem(), id)
		gotSnap, ok := decodeSnapshot(appendSnapshot(nil, &snap), id)
		same(&snap, gotSnap, ok)

		var appended, gotAppended raft.AppendEntriesResponse
		drawn(t, reflect.ValueOf(&appended).Elem(), id)
		ok = decodeAppended(appendAppended(nil, &appended), id, &gotAppended)
		same(&appended, &gotAppended, ok)

		var voted, gotVoted raft.RequestVoteResponse
		drawn(t, reflect.ValueOf(&voted).Elem(), id)
		ok = decodeVoted(appendVoted(nil, &voted), id, &gotVoted)
		same(&voted, &gotVoted, ok)

		var preVoted, gotPreVoted raft.RequestPreVoteResponse
		drawn(t, reflect.ValueOf(&preVoted).Elem(), id)
		ok = decodePreVoted(appendPreVoted(nil, &preVoted), id, &gotPreVoted)
		same(&preVoted, &gotPreVoted, ok)

		var installed, gotInstalled raft.InstallSnapshotResponse
		drawn(t, reflect.ValueOf(&installed).Elem(), id)
		ok = decodeInstalled(appendInstalled(nil, &installed), id, &gotInstalled)
		same(&installed, &gotInstalled, ok)
	})
}

func TestDecodedEntriesShareNothingWithTheFrame(t *testing.T) {
	b := appendAppend(nil, &raft.AppendEntriesRequest{Entries: []*raft.Log{{Data: []byte("data"), Extensions: []byte("ext")}}})
	a, ok := decodeAppend(b, nil)
	clear(b)
	if !ok || string(a.Entries[0].Data) != "data" || string(a.Entries[0].Extensions) != "ext" {
		t.Errorf("got %v, %+v", ok, a.Entries[0])
	}
}

func TestAConfigurationRaftCannotDecodeIsMalformed(t *testing.T) {
	b := appendAppend(nil, &raft.AppendEntriesRequest{Entries: []*raft.Log{{Type: raft.LogConfiguration, Data: []byte("junk")}}})
	if _, ok := decodeAppend(b, nil); ok {
		t.Error("accepted: raft would panic")
	}
	if _, ok := decodeSnapshot(appendSnapshot(nil, &raft.InstallSnapshotRequest{Configuration: []byte("junk")}), nil); ok {
		t.Error("accepted in a snapshot: raft would panic")
	}
}

func TestFramesOfAllSizesAreRead(t *testing.T) {
	var b []byte
	sizes := []int{0, 1, 100, readBuffer - 20, readBuffer, readBuffer + 1, 3 << 20, 7}
	for i, n := range sizes {
		start := len(b)
		b = appendHead(b, kindCall, uint64(i), uint64(n))
		b = append(b, bytes.Repeat([]byte{byte(i)}, n)...)
		if !endFrame(b, start) {
			t.Fatal("too long")
		}
	}
	r := frameReader{r: bufio.NewReaderSize(bytes.NewReader(b), readBuffer)}
	for i, n := range sizes {
		f, err := r.next()
		if err != nil || f.kind != kindCall || f.channel != uint64(i) || f.number != uint64(n) ||
			!bytes.Equal(f.body, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Errorf("frame %d: %v, %d bytes, %v", i, f.kind, len(f.body), err)
		}
	}
	if _, err := r.next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestAClaimedLengthTakesNoMemory(t *testing.T) {
	b := appendHead(nil, kindAppend, 1, 1)
	b[0], b[1], b[2], b[3] = 0, 0, 0xff, 0 // 16 MiB less a bit, of which 100 bytes come
	b = append(b, make([]byte, 100)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := frameReader{r: bufio.NewReaderSize(bytes.NewReader(b), readBuffer)}
	if _, err := r.next(); err == nil {
		t.Error("read")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*readBuffer {
		t.Errorf("%d bytes allocated", n)
	}
	r = frameReader{r: bufio.NewReaderSize(bytes.NewReader([]byte{1, 0, 0, 1}), readBuffer)}
	if _, err := r.next(); !errors.Is(err, errFrame) {
		t.Errorf("too long: %v", err)
	}
}

// FuzzFrame reads arbitrary bytes as frames and decodes every body in every way a
// node would: nothing may panic or take memory in proportion to a claimed length.
func FuzzFrame(f *testing.F) {
	for _, body := range [][]byte{
		appendAppend(nil, &raft.AppendEntriesRequest{Term: 1, Entries: []*raft.Log{{Index: 1, Term: 1, Data: []byte("x")}}}),
		appendAppend(nil, &raft.AppendEntriesRequest{Term: 1, Entries: []*raft.Log{{
			Type: raft.LogConfiguration,
			Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{{ID: "x", Address: "y"}}}),
		}}}),
		appendVote(nil, &raft.RequestVoteRequest{Term: 7, LeadershipTransfer: true}),
		appendBytes(appendBytes(nil, "a/1"), "b/1"),
		hello{from: From{"a", "1"}, target: "b"}.append(nil)[2:],
		welcome{from: From{"a", "1"}}.append(nil)[2:],
		{1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	} {
		b := append(appendHead(nil, kindAppend, 1, 2), body...)
		endFrame(b, 0)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := frameReader{r: bufio.NewReaderSize(bytes.NewReader(b), readBuffer)}
		for {
			fr, err := r.next()
			if err != nil {
				break
			}
			for k := kindHeartbeat; k <= kindTimeoutNow; k++ {
				decodeRequest(frame{kind: k, body: fr.body}, nil)
			}
			for _, c := range []call{
				{want: kindAppended, resp: &raft.AppendEntriesResponse{}},
				{want: kindVoted, resp: &raft.RequestVoteResponse{}},
				{want: kindPreVoted, resp: &raft.RequestPreVoteResponse{}},
				{want: kindTimedOut, resp: &raft.TimeoutNowResponse{}},
				{want: kindAnswer},
			} {
				_ = c.fill(fr)
				_ = c.fill(frame{kind: c.want, body: fr.body})
				_ = c.fill(frame{kind: kindFault, body: fr.body})
			}
			_, _ = decodeSnapshot(fr.body, nil)
			_, _ = parseHello(fr.body)
			_, _ = parseWelcome(fr.body)
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(8*readBuffer+200*len(b)*16) {
			t.Errorf("%d bytes allocated for %d", n, len(b))
		}
	})
}
