# run     builds all, console included, and serves the demo tenant
# test    installs what is missing, then verify, every test on both engines, concurrent ones under the race detector, and fuzzing
# build   bin/gatehouse with the console     server  bin/gatehouse without a front-end build
# bench   side by side with peers and the floor; writes docs/benchmarks.md
# dist    a release in dist/: archives for each platform, SBOM, checksums
# prove   the long reliability figures       verify  formatting, linters, goldens, dependency direction
# race    every test under the race detector
.PHONY: run test build server dist bench prove race verify verify-web verify-go engine
.DEFAULT_GOAL := build
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# -p 2 keeps the heavy compilations (SQLite, the linter) within two cores and a small memory.
GO_BUILD = go build -p 2 -trimpath -buildvcs=false -ldflags '-s -w$(if $(VERSION), -X main.version=$(VERSION))'
# What "gatehouse version" says: the tag, or how far the commit is from the last one. Without git, the module's version.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)

# "make test" runs every test once: under the race detector those that start goroutines, the others without it
# (scripts/tests). So many packages run at once: some of them wait.
TEST_P := 4
# Seconds per fuzz target, and for all of them together.
FUZZTIME ?= 15
FUZZ_TOTAL ?= 8
# The tests of the goldens and of the dependency direction, by name.
GOLDEN := Golden|Direction
# The tests behind "make prove" have Prove in their name. They run small in "make test"; with
# GATEHOUSE_PROVE=1 they run at the length that docs/reliability.md reports.
PROVE ?= Prove

LINT_VERSION := v2.15.0
# The Go version is part of the name: a linter built by an older Go refuses newer code.
LINT := .tools/bin/golangci-lint-$(LINT_VERSION)-$(firstword $(shell go env GOVERSION))

run: build
	bin/gatehouse demo

# The JavaScript engine that the build embeds: pinned, fetched once, verified each time.
engine:
	scripts/fetch-engine

build: engine
	scripts/web-build
	$(GO_BUILD) -tags console -o bin/gatehouse ./cmd/gatehouse

server: engine
	$(GO_BUILD) -o bin/gatehouse ./cmd/gatehouse

# What a release is for: static programs, with the console.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

dist: engine
	scripts/web-build
	scripts/dist '$(or $(VERSION),dev)' $(PLATFORMS)

# The two halves run side by side: the console's check uses one core.
verify: engine $(LINT)
	$(MAKE) --no-print-directory -j2 --output-sync=target verify-web verify-go

verify-web:
	scripts/need npm
	scripts/web-packages
	cd web && npm run check

verify-go: engine $(LINT)
	unformatted=$$(gofmt -l $$(ls -d cmd internal bench examples 2>/dev/null)); [[ -z $$unformatted ]] || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }
	go mod tidy -diff
	$(LINT) run --allow-parallel-runners ./...
	cd bench && ../$(LINT) run --allow-parallel-runners --config ../.golangci.yml . ./contact ./floor
	packages=$$(scripts/packages-with '$(GOLDEN)'); [[ -z $$packages ]] || go test -run '$(GOLDEN)' $$packages

test:
	scripts/need postgresql gcc npm chromium chromium-headless-shell haproxy pgbouncer strace
	$(MAKE) verify
	scripts/tests race -vet=off -p $(TEST_P) -timeout 15m
	scripts/tests plain -vet=off -p $(TEST_P) -timeout 15m -parallel 3
	FUZZTIME=$(FUZZTIME) FUZZ_TOTAL=$(FUZZ_TOTAL) scripts/fuzz

# Every test under the race detector, but those that cannot run there.
race: engine
	scripts/need postgresql gcc npm haproxy pgbouncer strace
	scripts/tests all-race -vet=off -p $(TEST_P) -timeout 30m

prove: engine
	scripts/need postgresql gcc npm haproxy pgbouncer strace
	packages=$$(scripts/packages-with '$(PROVE)'); [[ -n $$packages ]] || { echo 'no tests match $(PROVE)'; exit 1; }; \
	GATEHOUSE_PROVE=1 go test -count=1 -v -p 1 -run '$(PROVE)' -timeout 2h $$packages

# BENCH_FLAGS are the runner's, e.g. '-only read,list -rounds 1'.
bench: server
	scripts/need wrk taskset postgresql
	mkdir -p .cache/bench/bin
	cd bench && $(GO_BUILD) -o ../.cache/bench/bin/ . ./floor ./pocketbase
	.cache/bench/bin/bench -date $$(date -u +%F) -out docs/benchmarks.md $(BENCH_FLAGS)

$(LINT):
	GOBIN=$(CURDIR)/.tools/bin go install -p 2 -trimpath -ldflags '-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv .tools/bin/golangci-lint $@
