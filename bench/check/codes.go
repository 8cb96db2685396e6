package check

import (
	"slices"
	"strings"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// chargedPerhaps are the codes that say nothing about the charge. All other
// documented ones mean: not charged.
var chargedPerhaps = []string{"outcome_unknown", "deadline", "internal"}

// Code is the text that Op.Code has for a code of the wire contract.
func Code(c pb.Code) string {
	return strings.ToLower(strings.TrimPrefix(c.String(), "CODE_"))
}

// NotCharged says whether an error of this code promises that nothing was charged.
func NotCharged(code string) bool {
	return documented(code) && !slices.Contains(chargedPerhaps, code)
}

func documented(code string) bool {
	n, ok := pb.Code_value["CODE_"+strings.ToUpper(code)]
	return ok && n != 0
}

// Codes holds that every error is one of the documented codes (I17), none is one that only
// nodes say to each other or that fits nowhere, and an answer has none. That "not
// charged" is true is seen by Exact, Linear and Replay, which count no such
// operation. With Setup.Strict, no answer is made without the cluster. Cost: linear.
func Codes(s *Setup, ops []Op) Verdict {
	v := Verdict{Checker: "codes"}
	for i := range ops {
		o := ops[i : i+1]
		if s.Strict && ops[i].Degraded {
			v.find(ops[i].Bucket, o, "an answer was given without the cluster")
		}
		switch code := ops[i].Code; {
		case code == "":
			if ops[i].Outcome == Refused || ops[i].Outcome == Unknown {
				v.find(ops[i].Bucket, o, "a request failed without a code")
			}
			continue
		case !documented(code):
			v.find(ops[i].Bucket, o, "code %q is not documented", code)
		case code == "internal" || code == "policy_stale":
			v.find(ops[i].Bucket, o, "code %q reached a caller", code)
		case ops[i].Outcome == Admitted || ops[i].Outcome == Denied:
			v.find(ops[i].Bucket, o, "an answer came with code %q", code)
		case ops[i].Outcome == Refused && !NotCharged(code):
			v.find(ops[i].Bucket, o, "code %q does not say that nothing was charged", code)
		}
		v.Checked++
	}
	return v
}
