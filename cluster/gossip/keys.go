package gossip

import (
	"bytes"
	"errors"
	"slices"
)

// errPlain is returned for keys where gossip began without any.
var errPlain = errors.New("gossip began without keys: it cannot be encrypted before a restart")

// SetKeys replaces the keys: the first encrypts, each decrypts. Others go on to be
// understood for as long as they encrypt by one of them.
func (g *Gossip) SetKeys(keys [][]byte) error {
	if g.ring == nil || len(keys) == 0 {
		return errPlain
	}
	for _, k := range keys {
		if err := g.ring.AddKey(k); err != nil {
			return err
		}
	}
	if err := g.ring.UseKey(keys[0]); err != nil {
		return err
	}
	goes := func(k []byte) bool {
		return !slices.ContainsFunc(keys, func(keep []byte) bool { return bytes.Equal(k, keep) })
	}
	// The ring's RemoveKey moves the keys behind the one that goes, in the very slice that
	// others read. So only the last one is ever removed.
	for ring := g.ring.GetKeys(); slices.ContainsFunc(ring, goes); ring = g.ring.GetKeys() {
		last := ring[len(ring)-1]
		var err error
		if goes(last) {
			err = g.ring.RemoveKey(last)
		} else { // it becomes the second
			err = errors.Join(g.ring.UseKey(last), g.ring.UseKey(keys[0]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
