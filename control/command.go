package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/ringlimit/ringlimit/policy"
)

// Command is one of the types of this file and of those beside it: policies in
// put.go and override.go, slots in move_commands.go and wish.go, groups in grow.go,
// epoch.go and revert.go, nodes in members.go.
type Command interface {
	kind() string
	// apply does the command to s, which is a clone. With an error it may have
	// done a part: the clone is thrown away.
	apply(s *State) (changed bool, err error)
}

// Found is the first command of a cluster; any later one is refused. All
// policies get version 1.
type Found struct {
	ClusterID  string      `json:"cluster_id"`
	Secret     []byte      `json:"secret"`      // 16 bytes
	RoutingKey []byte      `json:"routing_key"` // 16 bytes
	Slots      int         `json:"slots"`       // 1 … 65,536
	Groups     int         `json:"groups"`      // 0: one per node
	Expect     int         `json:"expect"`      // ≥ 1
	Voters     int         `json:"voters"`      // 1, 3 or 5
	Policies   *policy.Set `json:"policies"`    // nil: none, and home [tenant]
	By         Author      `json:"by"`
}

// Register makes a node known, or known under a new incarnation or new addresses.
type Register struct {
	Node Node `json:"node"` // what it says from Removed on is ignored
	// Supersede lets it take a name from another data directory: the proposer
	// checked that the node of that name does not answer.
	Supersede bool `json:"supersede"`
}

// Place makes the first placement, once Expect nodes are registered.
type Place struct{}

// Form marks a group as formed: it has a leader that holds its slots.
type Form struct {
	Group uint32 `json:"group"`
	Epoch uint32 `json:"epoch"`
}

// Reform makes a group that never formed anew, with the next epoch and replicas
// on the present incarnations.
type Reform struct {
	Group uint32 `json:"group"`
	Epoch uint32 `json:"epoch"` // the one it has now
}

// Replace begins a step: the old replica is Leaving, a new one is Joining on
// Node's present incarnation. One step at a time in a group; but a Joining
// replica may itself be replaced.
type Replace struct {
	Group     uint32 `json:"group"`
	Epoch     uint32 `json:"epoch"`
	OldSerial uint64 `json:"old_serial"`
	Node      string `json:"node"`
}

// Promoted says that a joining replica is a voter now.
type Promoted struct {
	Group  uint32 `json:"group"`
	Epoch  uint32 `json:"epoch"`
	Serial uint64 `json:"serial"`
}

// Dropped says that a leaving replica is in no raft configuration any more.
type Dropped struct {
	Group  uint32 `json:"group"`
	Epoch  uint32 `json:"epoch"`
	Serial uint64 `json:"serial"`
}

// Miss marks a replica whose node is removed as missing, because no node is left
// to take its place.
type Miss struct {
	Group  uint32 `json:"group"`
	Epoch  uint32 `json:"epoch"`
	Serial uint64 `json:"serial"`
}

// Remove declares that a node will never return.
type Remove struct {
	Name string `json:"name"`
}

// format is what versions of an entry a kind of command may stand in: newest is
// what Encode writes. Version 2 came with policies that change, version 3 with
// groups and slots that do.
type format struct {
	empty          func() Command
	oldest, newest byte
}

// kinds are the formats of all commands.
var kinds = map[string]format{
	"found":            {func() Command { return new(Found) }, 1, 2},
	"register":         {func() Command { return new(Register) }, 1, 1},
	"place":            {func() Command { return new(Place) }, 1, 1},
	"form":             {func() Command { return new(Form) }, 1, 1},
	"reform":           {func() Command { return new(Reform) }, 1, 1},
	"replace":          {func() Command { return new(Replace) }, 1, 1},
	"promoted":         {func() Command { return new(Promoted) }, 1, 1},
	"dropped":          {func() Command { return new(Dropped) }, 1, 1},
	"miss":             {func() Command { return new(Miss) }, 1, 1},
	"remove":           {func() Command { return new(Remove) }, 1, 1},
	"put_policies":     {func() Command { return new(PutPolicies) }, 2, 2},
	"put_policy":       {func() Command { return new(PutPolicy) }, 2, 2},
	"delete_policy":    {func() Command { return new(DeletePolicy) }, 2, 2},
	"rollback":         {func() Command { return new(Rollback) }, 2, 2},
	"set_override":     {func() Command { return new(SetOverride) }, 2, 2},
	"clear_override":   {func() Command { return new(ClearOverride) }, 2, 2},
	"expire_overrides": {func() Command { return new(ExpireOverrides) }, 2, 2},
	"start_moves":      {func() Command { return new(StartMoves) }, 3, 3},
	"flip":             {func() Command { return new(Flip) }, 3, 3},
	"cancel_moves":     {func() Command { return new(CancelMoves) }, 3, 3},
	"settled":          {func() Command { return new(Settled) }, 3, 3},
	"rebalance":        {func() Command { return new(Rebalance) }, 3, 3},
	"add_group":        {func() Command { return new(AddGroup) }, 3, 3},
	"dissolve":         {func() Command { return new(Dissolve) }, 3, 3},
	"add_replica":      {func() Command { return new(AddReplica) }, 3, 3},
	"drop_replica":     {func() Command { return new(DropReplica) }, 3, 3},
	"set_replication":  {func() Command { return new(SetReplication) }, 3, 3},
	"drain":            {func() Command { return new(Drain) }, 3, 3},
	"undrain":          {func() Command { return new(Undrain) }, 3, 3},
	"left":             {func() Command { return new(Left) }, 3, 3},
	"retire":           {func() Command { return new(Retire) }, 3, 3},
	"unretire":         {func() Command { return new(Unretire) }, 3, 3},
	"revert":           {func() Command { return new(Revert) }, 3, 3},
	"new_epoch":        {func() Command { return new(NewEpoch) }, 3, 3},
	"born":             {func() Command { return new(Born) }, 3, 3},
	"refound":          {func() Command { return new(Refound) }, 3, 3},
}

func (Found) kind() string    { return "found" }
func (Register) kind() string { return "register" }
func (Place) kind() string    { return "place" }
func (Form) kind() string     { return "form" }
func (Reform) kind() string   { return "reform" }
func (Replace) kind() string  { return "replace" }
func (Promoted) kind() string { return "promoted" }
func (Dropped) kind() string  { return "dropped" }
func (Miss) kind() string     { return "miss" }
func (Remove) kind() string   { return "remove" }

// Format is the version of the entry that Encode makes of a command, unless it is
// so long that it is packed (EntryFormat): it may be proposed once all registered
// nodes read it (Node.FormatMax).
func Format(c Command) int { return int(kinds[c.kind()].newest) }

// FormatMax is the newest version of commands that this build reads. Version 3
// came with packed entries and with commands that move slots.
const FormatMax = 3

// envelope follows the version byte, the first of an entry, as JSON.
type envelope struct {
	Kind    string          `json:"kind"`
	Command json.RawMessage `json:"command"`
}

// An envelope as Encode writes it: kindKey, kind, commandKey, command, }.
const (
	kindKey    = `{"kind":"`
	commandKey = `","command":`
)

// open reads an envelope. The command in it is still to be judged.
func open(data []byte) (e envelope, err error) {
	// As Encode wrote it: two readings less of what may be a large command.
	if rest, ok := bytes.CutPrefix(data, []byte(kindKey)); ok && data[len(data)-1] == '}' {
		if kind, command, ok := bytes.Cut(rest[:len(rest)-1], []byte(commandKey)); ok && kinds[string(kind)].empty != nil {
			return envelope{string(kind), command}, nil
		}
	}
	return e, strict(data, &e)
}

// Encode returns the log entry of a command, packed if it is long.
func Encode(c Command) []byte {
	body, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", c.kind(), err)) // strings and numbers: cannot fail
	}
	b := append([]byte{kinds[c.kind()].newest}, kindKey...)
	b = append(append(append(b, c.kind()...), commandKey...), body...)
	return pack(append(b, '}'))
}

// Decode is the inverse of Encode; it refuses whatever Encode cannot have written.
func Decode(data []byte) (Command, error) {
	data, err := unpack(data)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("empty command")
	}
	if data[0] < 1 || data[0] > FormatMax {
		return nil, fmt.Errorf("command version %d, this build knows 1 … %d", data[0], FormatMax)
	}
	e, err := open(data[1:])
	if err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	f, ok := kinds[e.Kind]
	if !ok || data[0] < f.oldest || data[0] > f.newest {
		return nil, fmt.Errorf("command of kind %q, unknown in version %d", e.Kind, data[0])
	}
	c := f.empty()
	if err := strict(e.Command, c); err != nil {
		return nil, fmt.Errorf("command %s: %w", e.Kind, err)
	}
	return c, nil
}

// strict reads one JSON value without unknown fields and with nothing after it.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more after the end")
	}
	return nil
}
