package grpclimit

import (
	"log/slog"
	"sync"
)

// maxComplaints bounds the kinds that are told: what a kind is, is made of what is asked.
const maxComplaints = 64

// complaints tells each kind of fault once: a fault of the options comes with every call.
type complaints struct {
	log  *slog.Logger
	mu   sync.Mutex // guards told
	told map[string]bool
}

// once logs a kind of fault that was not logged before.
func (c *complaints) once(kind, text string, args ...any) {
	if c.isNew(kind) {
		c.log.Error(text, args...)
	}
}

func (c *complaints) isNew(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[kind] || len(c.told) >= maxComplaints {
		return false
	}
	if c.told == nil {
		c.told = map[string]bool{}
	}
	c.told[kind] = true
	return true
}
