// Package pemfile reads PEM files whole or not at all, for nodes and clients alike.
package pemfile

import (
	"bytes"
	"encoding/pem"
	"fmt"
)

// Blocks are all blocks of a PEM file, or an error that says which of them cannot be read:
// pem.Decode steps over those, so that a file cut off in the middle, or copied together
// without a newline, would pass for one that holds fewer.
func Blocks(data []byte) ([]*pem.Block, error) {
	begin := []byte("-----BEGIN")
	for all, left := []*pem.Block(nil), data; ; {
		block, rest := pem.Decode(left)
		begun := bytes.Count(left[:len(left)-len(rest)], begin)
		if block == nil {
			begun = bytes.Count(left, begin)
		}
		switch {
		case block == nil && begun == 0:
			return all, nil
		case block == nil || begun > 1:
			at := len(data) - len(left) + bytes.Index(left, begin)
			return nil, fmt.Errorf("block %d, which begins in line %d, is malformed or cut off", len(all)+1, 1+bytes.Count(data[:at], []byte("\n")))
		}
		all, left = append(all, block), rest
	}
}
