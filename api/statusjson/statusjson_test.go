package statusjson

import (
	"encoding/json"
	"strings"
	"testing"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// TestScriptsFindTheirNames: these names stand in scripts, and a list is never null.
func TestScriptsFindTheirNames(t *testing.T) {
	b, err := json.Marshal(Of(&pb.StatusResponse{Node: "a", Nodes: []*pb.NodeStatus{{Name: "a"}}, Groups: []*pb.GroupStatus{
		{Id: 7, Members: []*pb.ReplicaStatus{{Chain: 1<<64 - 1}}}, {},
	}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("cluster_id revision healthy slots nodes name incarnation state grpc http zone leads replicas " +
		"groups id epoch leader owner term applied buckets problems moves members") {
		if !strings.Contains(string(b), `"`+name+`":`) {
			t.Errorf("no %s in %s", name, b)
		}
	}
	if strings.Contains(string(b), "null") || !strings.Contains(string(b), `"chain":"ffffffffffffffff"`) || !strings.Contains(string(b), `"seen_by":"a"`) {
		t.Errorf("got %s", b)
	}
	if b, _ := json.Marshal(Nodes(nil)); string(b) != "[]" {
		t.Errorf("no nodes are %s", b)
	}
}
