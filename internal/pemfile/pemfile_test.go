package pemfile

import (
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
)

func TestBlocksAreReadAllOrNone(t *testing.T) {
	one := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("some bytes")})) // three lines
	for _, c := range []struct{ text, want string }{
		{"", "0 blocks"},
		{"only words\n", "0 blocks"},
		{one, "1 blocks"},
		{"of the authority\n" + one + "\n# and\n" + one + "the end", "2 blocks"},
		{strings.ReplaceAll(one+one, "\n", "\r\n"), "2 blocks"},
		{one + one[:30], "block 2, which begins in line 4,"},
		{one + one[:5], "1 blocks"},
		{one[:30] + "\n" + one, "block 1, which begins in line 1,"},
		{one + strings.Replace(one, "c", "!", 1) + one, "block 2, which begins in line 4,"},
		{one + strings.Replace(one, "END", "EMD", 1), "block 2, which begins in line 4,"},
		{strings.TrimSpace(one) + one, "block 1, which begins in line 1,"}, // copied together
		{one + "x" + one, "block 2, which begins in line 4,"},
	} {
		blocks, err := Blocks([]byte(c.text))
		got := fmt.Sprintf("%d blocks", len(blocks))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}
