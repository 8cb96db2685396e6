package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// statuses is the HTTP status of each code. 503 is for what was certainly not
// charged and may go well a moment later; 500, 502 and 504 are for what says
// nothing about the charge. docs/http.md has the table too; a test holds both to
// the codes there are.
var statuses = map[pb.Code]int{
	pb.Code_CODE_INVALID_ARGUMENT:    http.StatusBadRequest,
	pb.Code_CODE_NOT_LEADER:          http.StatusServiceUnavailable,
	pb.Code_CODE_NO_LEADER:           http.StatusServiceUnavailable,
	pb.Code_CODE_BUSY:                http.StatusServiceUnavailable,
	pb.Code_CODE_OUTCOME_UNKNOWN:     http.StatusBadGateway,
	pb.Code_CODE_TOO_OLD:             http.StatusConflict,
	pb.Code_CODE_ID_REUSED:           http.StatusConflict,
	pb.Code_CODE_DEADLINE:            http.StatusGatewayTimeout,
	pb.Code_CODE_NOT_HELD:            http.StatusServiceUnavailable,
	pb.Code_CODE_STORE_FULL:          http.StatusServiceUnavailable,
	pb.Code_CODE_NOT_READY:           http.StatusServiceUnavailable,
	pb.Code_CODE_UNAVAILABLE:         http.StatusServiceUnavailable,
	pb.Code_CODE_INTERNAL:            http.StatusInternalServerError,
	pb.Code_CODE_NOT_FOUND:           http.StatusNotFound,
	pb.Code_CODE_CONFLICT:            http.StatusConflict,
	pb.Code_CODE_PRECONDITION_FAILED: http.StatusPreconditionFailed,
	pb.Code_CODE_POLICY_STALE:        http.StatusServiceUnavailable,
	pb.Code_CODE_NOT_LEASED:          http.StatusConflict,
}

// refusal is a request that HTTP itself has words for. Nothing was charged.
type refusal struct {
	status int
	detail string
	field  string
	allow  string // 405: the methods there are
	accept string // 415: the types there are
}

func (r *refusal) Error() string { return r.detail }

// problem is an error as callers see it, by RFC 9457.
type problem struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Status      int    `json:"status"`
	Detail      string `json:"detail,omitempty"`
	Code        string `json:"code"`
	Field       string `json:"field,omitempty"`  // 400: what is wrong
	Reason      string `json:"reason,omitempty"` // limiter_unavailable: a failure mode that says closed
	PolicyID    string `json:"policy_id,omitempty"`
	FailureMode string `json:"failure_mode,omitempty"`
}

// problemType names the page that explains the codes, with the code as its place there.
const problemType = "https://github.com/ringlimit/ringlimit/docs/http.md#"

// problemOf is what an error becomes.
func problemOf(err error) problem {
	var r *refusal
	if errors.As(err, &r) {
		code := pb.Code_CODE_INVALID_ARGUMENT
		if r.status == http.StatusNotFound {
			code = pb.Code_CODE_NOT_FOUND
		}
		p := newProblem(code, r.detail)
		p.Status, p.Field = r.status, r.field
		return p
	}
	e := fault.ToProto(err)
	detail := e.GetMessage()
	if e.GetField() != "" {
		detail = e.GetField() + ": " + detail
	}
	p := newProblem(e.GetCode(), detail)
	p.Field, p.PolicyID, p.FailureMode = e.GetField(), e.GetPolicyId(), e.GetFailureMode()
	return p
}

func newProblem(code pb.Code, detail string) problem {
	status, known := statuses[code]
	if !known { // of a newer build, which says nothing about the charge
		code, status = pb.Code_CODE_INTERNAL, http.StatusInternalServerError
	}
	name := strings.TrimPrefix(code.String(), "CODE_")
	return problem{
		Type: problemType + strings.ToLower(name), Title: fault.FromProto(&pb.Error{Code: code}).Error(),
		Status: status, Detail: detail, Code: name,
	}
}

// unavailable is a decision that no bucket was asked for, where the policy's failure
// mode says closed: not the caller's fault, and so never 429.
func unavailable(d *pb.Decision) problem {
	p := newProblem(pb.Code_CODE_STORE_FULL, "no bucket could be asked, and the policy says closed")
	p.Reason, p.PolicyID, p.FailureMode = d.GetReason(), d.GetPolicyId(), "closed"
	return p
}

// problem answers with an error.
func (c *call) problem(err error) {
	var r *refusal
	if errors.As(err, &r) {
		h := c.w.Header()
		if r.allow != "" {
			h["Allow"] = []string{r.allow}
		}
		if r.accept != "" {
			h["Accept"] = []string{r.accept}
		}
	}
	p := problemOf(err)
	c.writeProblem(&p)
}

func (c *call) writeProblem(p *problem) {
	if p.Status == http.StatusServiceUnavailable {
		c.w.Header()["Retry-After"] = []string{"1"}
	}
	c.out = append(p.append(c.out[:0]), '\n')
	c.answer(p.Status, typeProblem)
}

func (p *problem) append(dst []byte) []byte { return appendJSON(dst, p) }

// appendJSON appends what package json makes of a value that it can always write.
func appendJSON(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("rest: " + err.Error()) // strings, numbers and lists of them: cannot fail
	}
	return append(dst, b...)
}
