# Everything a change needs. `make dev` and `make test` need Go and nothing else;
# whatever other tool a target uses is built from the versions in tools/go.mod.

GO       ?= go
FUZZTIME ?= 30s
BENCH    ?= .
COUNT    ?= 1
CHAOS    ?=
SEEDS    ?= 200
FROM     ?= 1
POLICIES ?=
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null)

# The modules of this repository; tools/ holds tools only and has no tests.
MODULES := . api client examples/routers bench/peers

# gubernator, one of the peers, brings packages that take minutes to compile: only the
# benchmark itself is built with them. No other module knows the tag.
LIGHT := nogubernator

# What agrees and carries is tested under the race detector, one processor a test
# binary: the longest package first, so that the others run beside it. What only
# decides starts no goroutine (internal/arch holds that), so there its short tests do,
# and all run without.
CORE := cluster transport
PURE := bucket policy ring control

# The race detector needs a C compiler. Without one the tests still run.
# One processor a test binary: all timers of a synctest bubble share one context of
# the detector, and two goroutines that find timers expired at once damage it
# (Go 1.26: SIGSEGV in its stack depot). Packages still run side by side.
ifeq ($(shell $(GO) env CGO_ENABLED),1)
RACE := -race -cpu 1
else
RACE :=
endif

TOOLS := bin/tools
TEST  := $(GO) test -timeout 20m

.DEFAULT_GOAL := help
.PHONY: help dev build vet test race fuzz bench bench-peers bench-peers-full bench-idle bench-scale capacity chaos chaos-short chaos-sim chaos-mutants envoy-conform try-operations docs-smoke fmt fmt-check lint proto ci clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: build ## Run a whole cluster in one process on loopback (POLICIES=FILE for your own)
	bin/rlnode dev $(if $(POLICIES),--policies $(POLICIES))

build: ## Build bin/rlnode
	$(GO) build -ldflags '-X main.buildVersion=$(VERSION)' -o bin/rlnode ./cmd/rlnode

vet: ## go vet in every module
	@set -e; for m in $(MODULES); do echo "go vet $$m"; (cd $$m && $(GO) vet -tags $(LIGHT) ./...); done

test: vet ## Vet and test every module, the core with the race detector
ifeq ($(RACE),)
	@echo "no C compiler: the race detector is off" >&2
endif
	$(TEST) $(RACE) -short $(CORE:%=./%/...) $(PURE:%=./%/...)
	$(TEST) $$($(GO) list ./... | grep -vE '^[^/]+/[^/]+/[^/]+/($(subst $() ,|,$(CORE)))(/|$$)')
	cd api && $(TEST) $(RACE) ./...
	cd client && $(TEST) $(RACE) ./...
	cd examples/routers && $(TEST) ./...
	cd bench/peers && $(TEST) -tags $(LIGHT) ./...

race: ## Test every package of every module with the race detector
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) test -tags $(LIGHT) $(RACE) -timeout 30m ./...); done

fuzz: ## Run every fuzz target for FUZZTIME (default 30s)
	FUZZTIME=$(FUZZTIME) tools/fuzz.sh $(MODULES)

bench: build ## Go benchmarks, then `rlnode bench` against three processes
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PURE:%=./%/...) $(CORE:%=./%/...)
	$(GO) run ./bench/processes -rlnode bin/rlnode -reps $(COUNT)

# An hour: everything at random, then each nemesis by itself, then each fault of a
# minority for good. Namespaces, and so half of the nemeses, need root, ip and nft.
CHAOS_RUN = bin/chaos -rlnode bin/rlnode

chaos: build ## Break real processes for an hour in every way there is (or CHAOS="scenario…", all: each)
	$(GO) build -o bin/chaos ./bench/chaos
ifeq ($(CHAOS),)
	$(CHAOS_RUN) -report bin/chaos-reports/safety -duration 38m safety
	$(CHAOS_RUN) -report bin/chaos-reports/nemeses -duration 25s nemesis all
	$(CHAOS_RUN) -report bin/chaos-reports/liveness -duration 15s liveness
else
	$(CHAOS_RUN) $(CHAOS)
endif

# What is short in `-short all` is what no nemesis of these eight, and no simulated
# seed, promises as well.
SHORT_NEMESES = kill-leader drain pause isolate loss churn split duplicate

chaos-short: build ## The faults of every change, in seven minutes, as CI runs them
	$(GO) build -o bin/chaos ./bench/chaos
	$(CHAOS_RUN) -short all
	$(CHAOS_RUN) -report bin/chaos-reports/short -duration 15s nemesis $(SHORT_NEMESES)
	$(MAKE) chaos-sim

# Two processes of one processor each, every other seed: one bubble uses one at a time.
SIM = GOGC=1600 GOMEMLIMIT=500MiB GOMAXPROCS=1 bin/sim.test -test.timeout 0 -test.run '^TestSeeds$$' -traces bin/traces -step 2

chaos-sim: ## Break simulated clusters in virtual time: SEEDS (default 200) from FROM (default 1)
	$(GO) test -c -o bin/sim.test ./bench/sim
	@mkdir -p bin/traces
	@$(SIM) -from $(FROM) -seeds $$((($(SEEDS) + 1) / 2)) & p=$$!; s=0; \
	if [ $(SEEDS) -gt 1 ]; then $(SIM) -from $$(($(FROM) + 1)) -seeds $$(($(SEEDS) / 2)) || s=1; fi; \
	wait $$p || s=1; exit $$s

chaos-mutants: ## Make one bug at a time in a copy of the product: a checker must see each
	$(GO) run ./bench/mutants

# Both go on where they were broken off: remove the directory to begin anew.
PEERS = cd bench/peers && $(GO) build -o ../../bin/peers . && cd ../.. && bin/peers -rlnode bin/rlnode

bench-peers: build ## Beside Redis and gubernator: uniform traffic, every point (needs redis-server; 20 minutes)
	$(PEERS) -o bin/peers-results

bench-peers-full: build ## The same with all kinds of traffic, and memory at 1 M and 10 M keys (two hours)
	$(PEERS) -o bin/peers-results-full -traffic uniform,mixed,zipf,hot,abusive -memory 1000000,10000000

bench-idle: build ## What an idle cluster of 3 and of 7 nodes costs: CPU of each node, writes on each link
	$(GO) run ./bench/idle -rlnode bin/rlnode

# A measurement by itself: make bench-scale SCALE="nodes"; see bench/scale for its flags.
SCALE ?= nodes keys overload open neighbour calm

bench-scale: build ## Cost, memory and tails as a cluster grows, fills and is overloaded (half an hour; SCALE="open" for one)
	$(GO) run ./bench/scale -rlnode bin/rlnode $(SCALE)

capacity: ## Print the tables of docs/capacity.md anew
	$(GO) run ./bench/capacity -page docs/capacity.md

# A module of its own that no other target builds: the reference brings its whole world.
CASES ?= 10000

envoy-conform: ## Beside envoyproxy/ratelimit, answer by answer: CASES generated cases (default 10000, ten minutes)
	cd bench/envoyconform && $(GO) vet . && $(TEST) . && $(GO) run . -cases $(CASES)

try-operations: build ## Run every procedure of docs/operations.md as it stands
	bench/operations.sh

docs-smoke: build ## Run what docs/quickstart.md shows: HTTP, Python and Node (needs their packages, or root on Debian)
	bench/callers.sh

fmt: $(TOOLS)/gofumpt ## Format all Go files
	$(TOOLS)/gofumpt -w .

fmt-check: $(TOOLS)/gofumpt ## Fail if a Go file is not formatted
	@files=$$($(TOOLS)/gofumpt -l .); \
	if [ -n "$$files" ]; then echo "not formatted (run make fmt):"; echo "$$files"; exit 1; fi

lint: fmt-check vet $(TOOLS)/golangci-lint ## Formatting, vet, golangci-lint and the import rules
	@set -e; for m in $(MODULES); do echo "golangci-lint $$m"; \
	(cd $$m && $(CURDIR)/$(TOOLS)/golangci-lint run --build-tags $(LIGHT) --config $(CURDIR)/.golangci.yml ./...); done
	$(GO) test -count 1 ./internal/arch

proto: $(TOOLS)/gofumpt ## Regenerate api/ from the .proto (needs protoc: Debian's protobuf-compiler)
	@command -v protoc >/dev/null || { echo "protoc not found: install protobuf-compiler" >&2; exit 1; }
	cd api && PATH="$(CURDIR)/$(TOOLS):$$PATH" protoc -I . \
	  --go_out=. --go_opt=paths=source_relative \
	  --go-grpc_out=. --go-grpc_opt=paths=source_relative \
	  ringlimit/v1/ringlimit.proto

ci: lint chaos-short test ## What .ci/run calls

clean: ## Remove what was built
	rm -rf bin

# One build makes all tools of a module; gofumpt stands for those of tools/.
$(TOOLS)/gofumpt: tools/go.mod tools/go.sum
	@mkdir -p $(TOOLS)
	cd tools && GOWORK=off $(GO) build -o ../$(TOOLS)/ tool
	@touch $@

$(TOOLS)/golangci-lint: tools/lint/go.mod tools/lint/go.sum
	@mkdir -p $(TOOLS)
	cd tools/lint && GOWORK=off $(GO) build -o ../../$(TOOLS)/ tool
	@touch $@
