package slogadapt

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestRepeatedErrorsAreLoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&b, nil)), "raft").With("peer", "x").Named("sub")
		for range 100 {
			l.Error("failed to heartbeat", "error", hclog.Fmt("%d%%", 7))
			l.Warn("something else")
			l.Info("not important")
			time.Sleep(150 * time.Millisecond)
		}
		got := b.String()
		if n := strings.Count(got, "failed to heartbeat"); n != 2 {
			t.Errorf("logged %d times in 15 s, want 2", n)
		}
		for _, want := range []string{"raft: failed", "peer=x", "error=7%", "left_out=66"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
		if strings.Contains(got, "not important") {
			t.Error("informational messages of raft are logged as information")
		}
	})
}
