//go:build !unix

package datadir

import (
	"errors"
	"os"
)

// acquire needs a lock that ends with the process, which only unix has here.
func acquire(string) (*os.File, error) {
	return nil, errors.New("a data directory needs a unix system; without one the node keeps all in memory")
}
