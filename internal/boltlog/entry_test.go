package boltlog

import (
	"testing"

	"github.com/hashicorp/raft"
)

func TestEveryFlippedBitOfAnEntryIsSeen(t *testing.T) {
	good := encode(&raft.Log{Index: 7, Term: 3, Type: raft.LogCommand, Data: []byte(`{"burst":100}`), Extensions: []byte("x")})
	var log raft.Log
	if err := decode(good, &log); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			if err := decode(bad, &log); err == nil {
				t.Errorf("byte %d, bit %d: not seen", i, bit)
			}
		}
	}
}
