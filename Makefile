# The commands of this repository. `make help` lists them.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build checked lint check test test-all ci counted test-rust typescript test-python celery run bench bench-quick bench-workers bench-node bench-console bench-agents bench-streams bench-growth bench-capacity bench-flow instructions largest profile instructions-beside chaos soak fuzz asan memcheck fixtures dist image test-dist test-upgrade release first-job deny lock console console-build screenshots site clean

# make run
PORT    ?= 6379
FOLDER  ?= .
WORKERS ?= 4
ONCE    ?=
# make console: REDIS, PORT (8379 unless it is given), WRITE (also of make instructions)
REDIS   ?= redis://127.0.0.1:6379
WRITE   ?=
# make chaos, make soak
SECONDS ?=
SEED    ?=
REPORT  ?=
# make bench
JOBS    ?=
MANY    ?=
MOST    ?=
PEERS   ?=
DURABLE ?=
# make fuzz
TARGET    ?=
SANITIZER ?=
# make asan, make memcheck
FILES   ?=
# make dist, make image, make test-dist: of those that `packaging/machines.py` lists
MACHINES ?=
# make fixtures, make release
VERSION ?=
KEY     ?=
DRY     ?=
# make test-python, make bench
SERVER  ?=
K       ?=
EVERY   ?=
# How many processes pytest uses: many tests wait, few compute.
PROCESSES ?= 12

# Compiled Python is kept, or each of the thousands of programs that tests start compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

VENV   := .venv/bin
HOST    = $(shell rustc -vV | sed -n 's/^host: //p')
BENCH  := target/bench/venv/bin
# The console that was built last, in whatever way.
CONSOLE = $(shell ls -t target/release/jobboard-console target/checked/jobboard-console 2>/dev/null | head -1)
# No folder of the machine that builds stands in what it builds.
REMAP  := --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo --remap-path-prefix=$(CURDIR)=/jobboard
# With the profile of `make profile`. A plain `cargo build --release` works too, and gives a slower module.
RELEASE := RUSTC_WRAPPER='$(CURDIR)/scripts/rustc-with-profile' RUSTFLAGS='$(strip $(RUSTFLAGS) $(REMAP))' CFLAGS='$(strip $(CFLAGS) $(patsubst --remap-path-prefix=%,-ffile-prefix-map=%,$(REMAP)))' cargo build --release --locked
# The module that pytest loads.
MODULE := target/checked/libjobboard.so
# That of the packages for this machine.
PACKED_MODULE = target/machines/linux-$(firstword $(subst -, ,$(HOST)))/$(HOST)/release/libjobboard.so
# Tests go out one by one, so that the long ones, which stand first, do not wait behind each other.
PYTEST := $(VENV)/pytest -n $(PROCESSES) --dist load --maxschedchunk 1 --timeout 300
# Compiles the tests, or all processes of pytest do it at the same time. What is wrong is told when they run.
COLLECT := { $(VENV)/pytest --collect-only -q >/dev/null 2>&1 || true; }
# Everything is built as one: with a part alone the features of what it depends on are others, and all is compiled again.
CHECKED := --workspace --profile checked --locked
# Clippy is the compiler of our own crates: one pass lints them and makes what the tests run.
LINTED := RUSTC_WORKSPACE_WRAPPER="$(CURDIR)/scripts/rustc-for-tests" CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings cargo

help: ## Show this list
	@echo 'Usage: make <target> [NAME=value ...]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: Debian packages (with sudo when not root), .venv from requirements.txt
	@scripts/setup

build: ## Compile the module: target/release/libjobboard.so
	$(RELEASE)

checked: setup ## Compile the module and the console as the tests want them: target/checked
	$(LINTED) build $(CHECKED)

lint: setup ## Check format, lints and types of Rust, Python and TypeScript
	$(VENV)/ruff check --no-cache .
	$(VENV)/ruff format --check .
	cargo fmt --all --check
	cargo fmt --all --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path examples/rust/Cargo.toml --check
	scripts/beside $(VENV)/mypy 'scripts/typescript lint' '$(LINTED) build $(CHECKED) --all-targets'

check: lint test-rust ## Format, lints, types and the cargo tests: what is quick

# What is installed mostly waits for the registries, and is installed while everything compiles. The cargo tests
# and pytest each leave cores idle at times: they run at the same time, too. A million steps leave none idle.
test: ## All that a change needs: make check and pytest
	@scripts/setup packages
	@scripts/beside 'scripts/setup && scripts/test-tools && $(COLLECT)' '$(LINTED) build $(CHECKED) --all-targets'
	@$(MAKE) lint
	@$(if $(STEPS),$(MAKE) test-rust && $(MAKE) test-python,scripts/beside '$(MAKE) test-rust' '$(MAKE) test-python')

ci: test-all ## make test-all, and the packages for all machines with their tests
	$(MAKE) test-dist MACHINES=all

test-all: counted ## make test with every test on every server and a million random steps, fuzzing, crates, upgrades, the demo
	$(MAKE) test EVERY=1 STEPS=1000000 MODULE=target/release/libjobboard.so
	$(MAKE) fuzz SECONDS=10
	$(MAKE) deny
	$(MAKE) test-upgrade
	$(MAKE) run ONCE=1
	@[ -n "$$(git status --porcelain)" ] || git rev-parse HEAD > target/green

# The same module executes the same instructions for the same calls: they are counted once.
counted: build
	@sum=$$(cat target/release/libjobboard.so benches/*.py tests/python/largest.py docs/reports/instructions.md | sha256sum); \
	if [ "$$sum" = "$$(cat target/counted 2>/dev/null)" ]; then echo 'instructions, largest: passed with this module before'; \
	else $(MAKE) instructions largest && echo "$$sum" > target/counted; fi

test-rust: setup ## cargo tests, property tests among them [STEPS=100000 of the random model]
	$(if $(STEPS),JOBBOARD_STEPS=$(STEPS)) $(LINTED) test $(CHECKED) --tests

typescript: ## The TypeScript package: clients/typescript/dist, its documentation in clients/typescript/docs, and jobboard-*.tgz in target/dist
	@scripts/typescript pack

test-python: setup $(if $(findstring release,$(MODULE)),build) checked ## pytest on the three servers [SERVER=redis70|redis82|valkey91] [EVERY=1: each test on all of them] [K=expression] [PROCESSES=4]
	@scripts/test-tools
	JOBBOARD_MODULE='$(abspath $(MODULE))' $(if $(filter-out 0 no,$(EVERY)),PYTHONPATH='$(CURDIR)/tests/without-hiredis') $(PYTEST) $(addprefix --server=,$(SERVER)) $(if $(filter-out 0 no,$(EVERY)),--every-server) $(if $(K),-k '$(K)')

celery: setup build ## Celery's and kombu's own tests over jobboard://, into docs/reports/celery.md [SERVER=redis82]: most of an hour
	@scripts/celery
	PYTHONPATH=tests/python $(VENV)/python tests/python/celery/theirs.py $(addprefix --server=,$(SERVER))

run: setup build ## Server, the console where it is built, workers, checksums of a folder [PORT=6379] [FOLDER=.] [WORKERS=4] [ONCE=1: end after the table]
	@$(if $(CONSOLE),,echo 'Without the console: `make console` builds it, in some minutes, and opens it.')
	@$(VENV)/jobboard serve --temporary --no-password --any-port --port $(PORT) --module target/release/libjobboard.so \
		$(if $(CONSOLE),--console $(CONSOLE),--no-console) --workers $(WORKERS) $(if $(filter-out 0 no,$(ONCE)),--once) --demo '$(FOLDER)'

console: checked ## The console in a browser [REDIS=redis://127.0.0.1:6379] [PORT=8379] [WRITE=1: let users act]
	@REDIS_URL='$(REDIS)' target/checked/jobboard-console --port $(if $(filter file,$(origin PORT)),8379,$(PORT)) $(if $(filter-out 0 no,$(WRITE)),--write)

screenshots: setup build checked ## The pictures of docs/guides/console.md, made anew
	PYTHONPATH=tests/python $(VENV)/python -m console.screenshots docs/guides/console

bench: bench-streams ## Those of bench-streams; CPU, memory, latency beside the peers, into docs/reports/benchmarks.md [SERVER=redis70] [JOBS=100000] [MANY=1000000] [MOST=10000000] [DURABLE=1]
	@scripts/peers
	$(BENCH)/python benches/bench.py $(addprefix --server=,$(SERVER)) $(addprefix --jobs=,$(JOBS)) $(addprefix --many=,$(MANY)) $(addprefix --most=,$(MOST)) $(addprefix --peers=,$(PEERS)) $(if $(filter-out 0 no,$(DURABLE)),--durable)

bench-console: setup build ## The console's pages with a million jobs in 10,000 queues, into docs/reports/console.md [SERVER=redis82] [JOBS=1000000]
	cargo build --release --locked -p jobboard-console
	JOBBOARD_MODULE='$(abspath target/release/libjobboard.so)' JOBBOARD_CONSOLE_FILE='$(abspath target/release/jobboard-console)' \
		$(VENV)/python benches/console_pages.py $(addprefix --server=,$(SERVER)) $(addprefix --jobs=,$(JOBS))

bench-streams: setup build ## Server CPU of a job beside Redis Streams on each server, with and without persistence, into docs/reports/streams.md [SERVER=redis82]
	$(VENV)/python benches/against_streams.py $(addprefix --server=,$(SERVER))

bench-growth: setup build ## Commands with a thousand and with ten million jobs of all features, and posts that blocked workers take, into docs/reports/growth.md [SERVER=redis82] [MOST=10000000]
	$(VENV)/python benches/growth.py $(addprefix --server=,$(SERVER)) $(addprefix --most=,$(MOST))

bench-capacity: setup build ## Jobs a second of one core, latency at fixed rates, CPU of a job on three nodes of a cluster, into docs/reports/capacity.md [SERVER=redis82]
	$(VENV)/python benches/capacity.py $(addprefix --server=,$(SERVER))

bench-flow: setup build ## Batches at a claim, output, waiting posts and searches beside plain commands, into docs/reports/flow.md [SERVER=redis82] [JOBS=1000000]
	$(VENV)/python benches/flow_of_work.py $(addprefix --server=,$(SERVER)) $(addprefix --jobs=,$(JOBS))

bench-agents: setup build ## Jobs of five steps that wait for a signal, workers and servers killed at random, into docs/reports/agents.md [SERVER=redis82] [JOBS=1000] [SEED=1]
	$(VENV)/python benches/agents.py $(addprefix --server=,$(SERVER)) $(addprefix --jobs=,$(JOBS)) $(addprefix --seed=,$(SEED))

bench-workers: setup build ## Our worker beside those of RQ, arq, Celery, Dramatiq, and the start of a test server, into docs/reports/workers.md [SERVER=redis82] [JOBS=5000]
	@scripts/workers
	$(VENV)/python benches/workers/bench.py $(addprefix --server=,$(SERVER)) $(addprefix --jobs=,$(JOBS))
	$(VENV)/python benches/workers/startup.py
	@$(MAKE) bench-node

bench-node: setup build typescript ## Our worker in Node beside BullMQ's, into docs/reports/workers.md [SERVER=redis82] [JOBS=5000]
	@scripts/peers node
	$(VENV)/python benches/workers/node_workers.py $(addprefix --server=,$(SERVER)) $(addprefix --jobs=,$(JOBS))

bench-quick: setup build ## A minute of `make bench`, printed only [SERVER=redis70] [PEERS=jobboard,streams]
	@scripts/peers
	$(BENCH)/python benches/quick.py $(addprefix --server=,$(SERVER)) $(addprefix --peers=,$(PEERS))

instructions: setup build ## Count the instructions of the hot verbs; fail when one has grown by 3 %, or the profile is stale [WRITE=1: note them]
	@$(RELEASE) 2>&1 | scripts/profile-fits
	$(VENV)/python benches/instructions.py $(if $(filter-out 0 no,$(WRITE)),--write)

largest: setup build ## Count the instructions of the largest call of every option of every command; fail above a thousand million [WRITE=1: into docs/reports/largest.md]
	$(VENV)/python benches/largest.py $(if $(filter-out 0 no,$(WRITE)),--write)

profile: setup ## Make packaging/jobboard.profdata anew, which release builds are compiled with: what the module executes in use
	$(VENV)/python benches/collect_profile.py

instructions-beside: setup build ## Count those of a whole job's life beside the peers [PEERS=jobboard,streams] [WRITE=1: into docs/reports/instructions.md]
	@scripts/peers
	$(BENCH)/python benches/instructions_beside.py $(addprefix --server=,$(SERVER)) $(addprefix --peers=,$(PEERS)) $(if $(filter-out 0 no,$(WRITE)),--write)

chaos: setup build ## Kill and part servers and workers at work, and check that nothing is lost [SECONDS=60, four times] [SEED=n] [SERVER=redis70] [REPORT=file]
	$(VENV)/python chaos/run.py $(addprefix --seconds=,$(SECONDS)) $(addprefix --seed=,$(SEED)) $(addprefix --server=,$(SERVER)) $(addprefix --report=,$(REPORT))

soak: setup build ## Churn of every sort at a steady population, sampled and judged [SECONDS=3600] [SERVER=redis82] [SEED=n] [REPORT=file]
	$(VENV)/python soak/churn.py $(addprefix --seconds=,$(SECONDS)) $(addprefix --seed=,$(SEED)) $(addprefix --server=,$(SERVER)) $(addprefix --report=,$(REPORT))

fuzz: setup ## Hostile bytes, guided by coverage, to snapshots, effects, texts and all commands [SECONDS=20 for each] [TARGET=commands] [SANITIZER=address]
	@command -v cargo-fuzz >/dev/null || { echo 'installing cargo-fuzz'; cargo install -q cargo-fuzz --version 0.13.2 --locked; }
	@for target in $(or $(TARGET),snapshot effects texts commands); do \
		mkdir -p fuzz/corpus/$$target; \
		$(if $(SANITIZER),RUSTC_BOOTSTRAP=1) cargo fuzz run --sanitizer $(or $(SANITIZER),none) --target-dir fuzz/target/$(or $(SANITIZER),plain) \
			$$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(or $(SECONDS),20) -rss_limit_mb=4096 -max_len=16384 -verbosity=0 -print_final_stats=1 || exit 1; \
	done

dist: setup ## Packages in target/dist: module and console in a tarball, a .deb, an .rpm and a wheel; the Python wheel and sdist; the npm package [MACHINES=all: for other machines too]
	@scripts/packaging
	$(VENV)/python packaging/build.py $(MACHINES)

deny: ## Check the licences, sources and known faults of all crates (installs cargo-deny: some minutes, once)
	@scripts/deny

site: setup ## The documents as a site with search: target/site/index.html; fails on a dead link
	@scripts/site
	target/tools/site/bin/python website/build.py

lock: setup ## Pin what each requirements.in needs, with hashes, in the requirements.txt beside it
	@scripts/lock

image: setup ## The image of a container with Valkey, module and console in target/images, without a registry [MACHINES=all: for arm64 too]
	@scripts/packaging image
	$(VENV)/python packaging/image.py $(MACHINES)

test-dist: dist $(if $(filter 0,$(shell id -u)),image) ## Install each package in a clean place, and use it; run the image [MACHINES=all: what was made for other machines too] [EVERY=1: compile the console again, too]
	@scripts/dist-tests
	JOBBOARD_MODULE='$(abspath $(PACKED_MODULE))' $(if $(filter-out 0 no,$(EVERY)),JOBBOARD_EVERY=1) $(PYTEST) tests/dist

test-upgrade: checked ## Upgrades of a running pair and cluster to a pretended next version, and back, on the three servers
	$(VENV)/python tests/upgrade/next_version.py
	JOBBOARD_MODULE='$(abspath $(MODULE))' $(VENV)/pytest -n 2 --timeout 300 tests/upgrade

release: setup ## Make a release: version, changelog, tag, all artefacts in target/dist; publishes nothing [VERSION=0.2.0] [KEY=key of GnuPG] [DRY=1: rehearse]
	@$(VENV)/python packaging/release.py '$(or $(VERSION),$(error VERSION=0.2.0, say))' $(if $(KEY),--key '$(KEY)') $(if $(filter-out 0 no,$(DRY)),--dry-run)

first-job: dist ## How long it takes from an empty virtual environment to the first job done, with the wheels alone
	$(VENV)/python packaging/first_job.py

fixtures: setup build ## Make the snapshots and logs of a version, which every later one has to load [VERSION=0.2.0]
	$(VENV)/python tests/fixtures/make.py $(or $(VERSION),$(error VERSION=that of Cargo.toml))

asan: setup ## The tests with AddressSanitizer in the module, on Redis 7.0 [FILES="test_post.py ..."] [K=expression] [PROCESSES=2]
	RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Zsanitizer=address -Clink-arg=-Wl,-z,undefs' cargo build --locked --target $(HOST) --target-dir target/asan
	$(VENV)/python tests/asan.py --module target/asan/$(HOST)/debug/libjobboard.so $(if $(filter file,$(origin PROCESSES)),,-n $(PROCESSES)) $(if $(K),-k '$(K)') $(FILES)

memcheck: setup ## The tests with every server under valgrind [FILES="test_post.py ..."] [K=expression] [SERVER=redis70] [PROCESSES=2]
	$(if $(JOBBOARD_MODULE),,cargo build --locked)
	JOBBOARD_MODULE='$(or $(JOBBOARD_MODULE),$(CURDIR)/target/debug/libjobboard.so)' $(VENV)/python tests/memcheck.py $(addprefix --server=,$(SERVER)) $(if $(filter file,$(origin PROCESSES)),,-n $(PROCESSES)) $(if $(K),-k '$(K)') $(FILES)

clean: ## Remove what was built and .venv
	cargo clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
