package rest

import (
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Routes are all operations, as "METHOD pattern".
func Routes() (out []string) {
	for _, r := range (&Handler{}).routes() {
		out = append(out, r.method+" "+r.pattern)
	}
	return out
}

// Statuses is the HTTP status of each code.
func Statuses() map[pb.Code]int { return statuses }

// ReadDecision reads the body of a decision.
func ReadDecision(body []byte) (*pb.DecideRequest, error) {
	s, err := newScan(body)
	if err != nil {
		return nil, err
	}
	q := new(request)
	if err := q.read(&s, false); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return &q.decide, q.done()
}
