# Everything a developer does here is a target; `make` alone lists them.

# No package's tests take longer than this, or one hangs.
TEST_TIMEOUT ?= 30m
# More flags for go test, for example -v or -run=TestOpen.
TEST_FLAGS ?=
# How long each fuzz test of make verify-fuzz looks for a counterexample.
FUZZ_TIME ?= 30s
# Which parts make verify-all runs, as "race clients"; empty: all that have not passed.
PARTS ?=
# How much make bench measures: full (over half an hour, 20 GB of disk under TMPDIR), small (a minute) or tiny (a trial).
BENCH_SCALE ?= full
# More flags for it, for example -only=words,vectors.
BENCH_FLAGS ?=
# What make release builds for, as linux/amd64; empty: linux and darwin, amd64 and arm64.
PLATFORMS ?=

# What was compiled in one clone serves in another, for the tests, the linter and the build alike; only the race detector
# needs cgo. With the tag, grpc has no pages about its requests: their templates keep 10 MB of methods in the program that
# nothing calls.
export GOFLAGS := $(GOFLAGS) -trimpath -tags=grpcnotrace
export CGO_ENABLED ?= 0

golangci_lint := go tool -modfile=tools/go.mod golangci-lint
templ := go tool -modfile=tools/go.mod templ

.DEFAULT_GOAL := help
.PHONY: help setup generate build run test test-citus race client-test python-client-test mcp-test lint fmt smoke bench eval microbench \
	release image clean verify-all verify-race verify-long verify-chaos-servers verify-chaos-agents verify-chaos-handovers verify-fuzz \
	verify-arm64 verify-clients verify-browser verify-release

# What a target that runs tests begins with: Postgres set up, its programs known to the tests.
with_postgres := postgres=$$(scripts/setup-postgres.sh) && export LOCI_POSTGRES_BIN=$$postgres
# Before go test: all packages use one Postgres.
shared := go run ./db/dbtest/shared

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-22s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Find Postgres with pgvector, or install it; print where its programs are
	@scripts/setup-postgres.sh

generate: ## Make the Go code of the templates of pages, *.templ
	$(templ) generate

build: ## Build bin/loci
	go build -ldflags='-s -w' -o bin/loci ./cmd/loci

run: build ## Set everything up and serve Loci on a private Postgres, with demo data in an empty one
	@$(with_postgres) && exec bin/loci serve --demo

test: ## Set everything up and run the tests, property tests briefly
	@$(with_postgres) && set -x && $(shared) go test -timeout=$(TEST_TIMEOUT) $(TEST_FLAGS) ./server ./...

test-citus: ## Run the tests on a Citus cluster: LOCI_TEST_DATABASE_URL names a superuser and a database of its coordinator
	@test -n "$$LOCI_TEST_DATABASE_URL" || { echo "LOCI_TEST_DATABASE_URL names no coordinator" >&2; exit 1; }
	go test -p=1 -timeout=$(TEST_TIMEOUT) $(TEST_FLAGS) ./server ./...

race: ## Run the tests of the packages that start goroutines with the race detector
	@$(with_postgres) && set -x && $(shared) env CGO_ENABLED=1 go test -race -timeout=$(TEST_TIMEOUT) $(TEST_FLAGS) \
		$$(scripts/concurrent-packages.sh)

# The parts of verify-all. Each may be run alone, and takes at most 45 minutes on two cores.
verify-all: ## Run what takes long, in parts; those that passed on these files are not run again
	@MAKE='$(MAKE)' scripts/verify.sh $(PARTS)

# The tests that start servers as processes and kill them, the walks in a browser, and those that build releases have
# parts of their own.
chaos_servers := NothingIsLostWhenServersAreKilled|TheLogOutlivesKilledServers
chaos_agents := AnAgentLosesAndRepeatsNothingWhenServersAreKilled|TheWindowOutlivesKilledServers
chaos_handovers := FlushesAndHandoversOutliveKilledServers
browser := ConsoleInABrowser
release_tests := TheReleaseOfATag|TheVersionOfTheImage
parted := ^Test($(chaos_servers)|$(chaos_agents)|$(chaos_handovers)|$(browser)|$(release_tests))$$
long := LOCI_TEST_SCALE=long $(shared) go test -timeout=60m $(TEST_FLAGS)

verify-race: ## Part: run the tests of all packages with the race detector
	@$(with_postgres) && set -x && $(shared) env CGO_ENABLED=1 go test -race -timeout=60m $(TEST_FLAGS) ./...

verify-long: ## Part: run all other tests at the long scale: see package scale
	@scripts/setup-manual.sh
	@$(with_postgres) && set -x && $(long) -skip='$(parted)' ./...

verify-chaos-servers: ## Part: kill servers, and look for writes that are lost
	@$(with_postgres) && set -x && $(long) -v -run='^Test($(chaos_servers))$$' ./cmd/loci

verify-chaos-agents: ## Part: kill the servers of agents at work
	@$(with_postgres) && set -x && $(long) -v -run='^Test($(chaos_agents))$$' ./cmd/loci

verify-chaos-handovers: ## Part: kill servers during flushes and hand-overs
	@$(with_postgres) && set -x && $(long) -v -run='^Test($(chaos_handovers))$$' ./cmd/loci

verify-fuzz: ## Part: fuzz each fuzz test for FUZZ_TIME
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | while IFS=: read -r file match; do \
		echo "$${file%/*} $${match#func }"; \
		go test -run='^$$' -fuzz="^$${match#func }$$" -fuzztime=$(FUZZ_TIME) "$${file%/*}" || exit 1; \
	done

verify-arm64: ## Part: run the tests of the built-in encoder as a program of arm64, in qemu on other processors
	@qemu=$$(scripts/setup-qemu.sh) && set -x && \
		GOARCH=arm64 go test -timeout=30m $(TEST_FLAGS) $${qemu:+-exec=$$qemu} ./embed/local

verify-clients: ## Part: drive the built program with published clients, over REST and MCP
	$(MAKE) client-test
	$(MAKE) python-client-test
	$(MAKE) mcp-test

verify-browser: ## Part: walk through the console with Chromium
	@scripts/setup-chromium.sh
	@$(with_postgres) && set -x && $(long) -run='^Test($(browser))$$' ./server

verify-release: ## Part: build a release twice, and install and run it
	@$(with_postgres) && set -x && $(long) -v -run='^Test($(release_tests))$$' ./cmd/loci

client-test: build ## Drive the built program with the published clients of Letta, and with programs of other packages
	@$(with_postgres) && scripts/client-test.sh && scripts/gateway-client-test.sh

python-client-test: build ## Drive the built program with Letta's published Python clients, versions 1 and 0.1
	@$(with_postgres) && scripts/python-client-test.sh

mcp-test: build ## Drive the built program over MCP: SDKs, recipes of docs/mcp.md, the protocol's conformance suite
	@$(with_postgres) && scripts/mcp-test.sh

lint: ## Check format, words of comments, generated code, vet, and lint
	@unformatted=$$(gofmt -l .) && [ -z "$$unformatted" ] || { echo "not formatted with gofmt: $$unformatted"; exit 1; }
	go vet ./...
	go vet -tags conformance,grpcnotrace ./cmd/loci
	go run -C tools ./words ..
	$(golangci_lint) run
	$(templ) generate -check

fmt: ## Format all code
	gofmt -w .

smoke: build ## Take the built program through the walks of README.md and docs/walkthrough.md
	@$(with_postgres) && scripts/smoke.sh

bench: build ## Measure Loci against COPY, pgbench (postgresql-contrib), rg (ripgrep) and SQLite; rows of what is absent say so
	@$(with_postgres) && \
		go build -C bench/fts5 -o ../../bin/fts5 . && export PATH="$$PWD/bin:$$PATH" && \
		go run ./bench -scale=$(BENCH_SCALE) -out=bench/results $(BENCH_FLAGS)

eval: build ## Print how well messages and files are found: goldens, LoCoMo (LOCI_EVAL_LOCOMO), BEAM (LOCI_EVAL_BEAM), manuals
	@$(with_postgres) && \
		LOCI_TEST_SCALE=long go test ./recall ./bench/questions -run='^(TestRetrieval|TestFusion)' -count=1 && \
		cat recall/testdata/dialogues.golden recall/testdata/code.golden bench/questions/testdata/fusion.golden && \
		go run ./bench -locomo="$$LOCI_EVAL_LOCOMO" -beam="$${LOCI_EVAL_BEAM:-bench/testdata/beam}" -files -misses="$$LOCI_EVAL_MISSES"

microbench: ## Run the benchmarks of single functions
	@$(with_postgres) && go test -run='^$$' -bench=. -benchmem ./...

release: ## Build the archives of a release in dist, for the platforms of PLATFORMS, with their checksums
	@scripts/release.sh $(PLATFORMS)

image: ## Build the container image loci, whose program prints the commit's tag as its version
	docker build --build-arg VERSION="$$(git describe --tags --exact-match 2>/dev/null)" --tag loci .

clean: ## Remove what was built
	rm -rf bin dist
