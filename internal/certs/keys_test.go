package certs

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeysOfGossip(t *testing.T) {
	one, two := NewKey(), NewKey()
	for name, c := range map[string]struct {
		text string
		keys int
		want string
	}{
		"one":        {one, 1, ""},
		"two":        {"# newest\n" + one + "\n\n" + two + "\n", 2, ""},
		"none":       {"# none\n", 0, "holds 0 keys"},
		"not base64": {one + "\n???", 0, "line 2"},
		"too short":  {"AAAA", 0, "line 1"},
		"twice":      {one + "\n" + one, 0, "twice"},
		"too many":   {strings.Join([]string{NewKey(), NewKey(), NewKey(), NewKey(), NewKey(), NewKey(), NewKey(), NewKey(), NewKey()}, "\n"), 0, "9 keys"},
	} {
		keys, err := parseKeys([]byte(c.text))
		if len(keys) != c.keys || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
		if err != nil && strings.Contains(err.Error(), one) {
			t.Errorf("%s: the error tells a key", name)
		}
	}
}

func TestKeysAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		path := l.write("keys", []byte(NewKey()))
		k, err := OpenKeys(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var told int
		var fault error
		k.Changed = func(keys [][]byte) error { told = len(keys); return fault }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Run(ctx) }()
		l.write("keys", []byte(NewKey()+"\n"+NewKey()))
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if told != 2 || len(k.List()) != 2 {
			t.Errorf("told of %d keys, %d in use", told, len(k.List()))
		}
		fault = errors.New("no")
		l.write("keys", []byte(NewKey()))
		time.Sleep(3 * lookEvery)
		synctest.Wait()
		if k.Refused() != 1 || len(k.List()) != 2 {
			t.Errorf("refused %d times, %d in use", k.Refused(), len(k.List()))
		}
		cancel()
		<-done
	})
}
