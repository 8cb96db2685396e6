package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/policy"
)

// lines is a log handler that keeps warnings.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { l.b.WriteString(" " + a.String()); return true })
	l.b.WriteByte('\n')
	return nil
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *lines) WithGroup(string) slog.Handler      { return l }

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestNodeWarnsOfAFileThatIsNotTheClusters, and of none that is.
func TestNodeWarnsOfAFileThatIsNotTheClusters(t *testing.T) {
	for name, change := range map[string]func(*policy.Set){
		"": func(*policy.Set) {},
		"differences=2 such as=hundred differs, new is in the file only": func(s *policy.Set) {
			s.Policies[1].Limit.Amount++
			s.Policies = append(s.Policies, &policy.Policy{ID: "new", Scope: []string{"tenant"}, Limit: s.Policies[0].Limit})
		},
	} {
		bubble(t, 3, func(t *testing.T, s *sim) {
			s.boot()
			late := testPolicies()
			change(late)
			log := new(lines)
			s.stop("c")
			cfg := s.config("c")
			cfg.Policies, cfg.BootstrapExpect, cfg.Logger = late, 0, slog.New(log)
			n, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			s.run(n)
			s.healthy(time.Minute)
			time.Sleep(time.Second)
			got := log.String()
			if name == "" && strings.Contains(got, "--policies") || !strings.Contains(got, name) {
				t.Errorf("%q is not in %q", name, got)
			}
		})
	}
}
