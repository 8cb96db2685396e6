package arch

// Module is the import path of the repository's root; the modules api, client,
// bench/peers and bench/envoyconform lie beneath it.
const Module = "github.com/ringlimit/ringlimit"

// Direction says which other packages of this repository a part of it may
// import. Paths are relative to Module and stand for everything beneath them.
// The longest Of that fits a package is its rule, and a part may always import
// itself. A package without a rule is a violation: decide where it belongs.
type Direction struct {
	Of  string
	May []string
	Why string
}

// Directions is the shape of the repository, from the leaves to the binary.
var Directions = []Direction{
	{
		Of:  "bucket",
		Why: "every replica must decide alike from the log alone, so the arithmetic knows nothing of who asks, routes or carries",
	},
	{
		Of:  "ring",
		Why: "placement is a function of names and numbers; a test must be able to ask it about any cluster there could be",
	},
	{
		Of:  "api",
		Why: "callers of other modules depend on the contract; it must not drag a node in",
	},
	{
		Of:  "internal",
		Why: "these are leaves: what they need comes in as an argument, so that any package may use them without a cycle",
	},
	{
		Of:  "internal/certs",
		May: []string{"internal/pemfile"},
		Why: "what proves who somebody is must be readable by itself, in one sitting; links, listeners and gossip are handed what they need of it",
	},
	{
		Of:  "policy",
		May: []string{"bucket", "api/route", "api/fault"},
		Why: "a policy turns a request into limits and keys; where those are kept and who leads is not its business",
	},
	{
		Of:  "decision",
		May: []string{"bucket", "policy"},
		Why: "what a caller is told must be the same from the cluster and from simulate, which has no cluster",
	},
	{
		Of:  "control",
		May: []string{"ring", "policy", "api/fault"},
		Why: "the agreed configuration is a deterministic state machine: it plans, the cluster acts",
	},
	{
		Of:  "transport",
		May: []string{"api", "policy", "bucket", "internal/quiet"},
		Why: "it carries messages; if it knew groups or placement, every change of those would change the wire",
	},
	{
		Of:  "transport/rest",
		May: []string{"api", "policy", "bucket"},
		Why: "it turns HTTP into calls of the service and answers into JSON; over a service made of functions all of it runs in a test, without gRPC, links or a node",
	},
	{
		Of:  "transport/envoy",
		May: []string{"api", "policy", "bucket"},
		Why: "it turns Envoy's words into calls of the service and back; over a service made of functions all of it runs in a test and in the conformance run, without gRPC, links or a node",
	},
	{
		Of:  "cluster/group",
		May: []string{"bucket", "api", "internal"},
		Why: "one replica of one group must run in a test without a node, a ring or a policy around it",
	},
	{
		Of:  "cluster/intake",
		Why: "what is refused under load follows from times and numbers alone, so that a test can play any load in no time",
	},
	{
		Of:  "cluster",
		May: []string{"transport", "control", "ring", "policy", "decision", "bucket", "api", "internal"},
		Why: "the node is where all parts meet; nothing but the binary and the benches may stand above it",
	},
	{
		Of:  "internal/pemfile",
		Why: "what makes a file of authorities whole must be one thing to nodes and to clients, and clients link nothing of a node: so it lies beneath both",
	},
	{
		Of:  "client",
		May: []string{"api", "policy", "bucket", "internal/pemfile"},
		Why: "an application that links the client must not link raft, gossip or the node; the policies it has, because a client that decides without the cluster must match as a node does",
	},
	{
		Of:  "client/httplimit",
		May: []string{"client", "api/fault", "api/ratelimit"},
		Why: "middleware knows the client as any application does; what it would need of policies, the client must tell",
	},
	{
		Of:  "cmd",
		May: []string{"cluster", "client", "api", "policy", "decision", "bucket", "bench/load", "examples", "internal/certs"},
		Why: "a command parses flags and calls; what only it can reach cannot be tested without a process",
	},
	{
		Of:  "bench",
		May: []string{"cluster", "client", "api", "policy", "bucket"},
		Why: "benches and faults use what users use, so that their figures are the users' figures",
	},
	{
		Of:  "bench/capacity",
		May: []string{"ring", "control"},
		Why: "it asks the planner about clusters that nobody could start; all else it knows is figures that the pages tell",
	},
	{
		Of:  "bench/check",
		May: []string{"client", "api", "bucket"},
		Why: "a history is judged by what callers saw alone: the same verdict for processes, for a simulation and for a stored history",
	},
	{
		Of:  "bench/scale",
		May: []string{"client", "policy", "bench/fleet", "bench/load"},
		Why: "what it measures are processes, by what they answer, their metrics and the kernel's books: a node in its own process would share its cost",
	},
	{
		Of:  "bench/envoyconform",
		May: []string{"transport/envoy", "policy", "decision", "bucket", "api"},
		Why: "a module of its own, with the reference and all that it brings: the two are compared request by request in one virtual time, so what it has of ours is the service, the import and the buckets",
	},
	{
		Of:  "bench/peers",
		May: []string{"client", "bench/fleet", "bench/load"},
		Why: "a module of its own, with other limiters and all they bring: what it knows of ours is the client, as it knows of theirs",
	},
	{
		Of:  "examples",
		May: []string{"cluster", "client", "api", "policy", "bucket"},
		Why: "an example that needs an inner package shows that the public one lacks something",
	},
}

// Pure are the packages that are told the time and everything else: no
// goroutine, clock, socket, file, log, metric or chance.
var Pure = []string{"bucket", "policy", "ring", "control", "api/ratelimit"}

// pureWhy is the reason behind Pure.
const pureWhy = "pure packages give the same result for the same arguments on every machine, in every replay and in every test"

// impureImports are standard and foreign packages, with all beneath them, that
// a pure package has no use for.
var impureImports = []string{
	"context", "crypto/rand", "expvar", "log", "math/rand", "net", "os", "runtime", "syscall",
	"github.com/hashicorp/go-hclog", "github.com/hashicorp/go-metrics", "github.com/hashicorp/memberlist",
	"github.com/hashicorp/raft", "github.com/prometheus", "golang.org/x/net", "golang.org/x/sync",
	"golang.org/x/sys", "google.golang.org/grpc",
}

// clockCalls are the functions of package time that read or wait for a clock.
// Durations and their parsing are values and welcome.
var clockCalls = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}

// vagueNames are package names that say nothing about what belongs inside.
var vagueNames = []string{
	"base", "common", "helper", "helpers", "misc", "model", "models", "shared", "types", "util", "utils",
}

// vagueWhy is the reason behind vagueNames.
const vagueWhy = "such a package attracts whatever has no home; name it after what it provides"

// Elapsed are the packages where time becomes tokens: they may count elapsed
// time, and never read what the wall clock says. An operator, NTP or a leap may
// set that by hours.
var Elapsed = []string{"bucket", "cluster/group", "internal/ringlog"}

// elapsedWhy is the reason behind Elapsed.
const elapsedWhy = "no wall clock may mint or freeze tokens: elapsed time is the leader's monotonic time"

// wallCalls are the methods of time.Time that give the wall clock's reading or
// lose the monotonic one.
var wallCalls = []string{
	"Unix", "UnixNano", "UnixMilli", "UnixMicro", "Date", "Clock", "Format", "AppendFormat", "UTC", "Local", "In",
	"MarshalText", "MarshalBinary", "MarshalJSON", "AddDate",
}
