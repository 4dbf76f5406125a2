# The commands of this repository. `make demo` shows Talon at work, `make test` runs every test; both install
# what they lack when they run as root, and otherwise say the exact command.

PROFILE ?= debug
CARGO_PROFILE = $(if $(filter release,$(PROFILE)),--release,)

.PHONY: help demo dev test test-vm long long-schedule hostile screenshots interop install package reproducible build plugins deps deps-everything deps-test deps-bench lint doc fmt fuzz bench bench-quick bench-loaded bench-compare bench-parts bench-flames soak

help: ## lists these commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

demo: deps ## builds, starts a supervisor with the example plugins in a scratch directory, and shows the main job
	@tests/scripts/progress.sh "Building Talon and the plugins of the demo" cargo build --locked --bins \
	  -p talon -p talon-state -p talon-agent -p talon-gateway -p talon-demo -p hello -p code-search -p misbehave
	@plugins-examples/stage.sh debug hello code-search csv-query
	@target/debug/talon-demo

DEV_PLUGINS ?= hello notes
dev: deps ## builds what changed and runs a supervisor with example plugins in a scratch directory, until Ctrl-C (DEV_PLUGINS="hello notes")
	@plugins-examples/dev.sh $(DEV_PLUGINS)

test: deps-everything ## runs every test; installs what they need while it builds
	@tests/scripts/test.sh

test-vm: deps ## runs the tests of cgroups in a virtual machine that has all controllers (1 to 2 minutes)
	@tests/scripts/test-cgroup-vm.sh

long: deps deps-test ## runs the tests that take minutes and are left out of `make test`: a session of 300 turns, 200 kills of the agent in turns with hooks and in jobs, of gateway and agent under one client, 1,000 sessions that stream at once, 10,000 sessions of one sender, 1,000 readers that stall and floods of connections and sessions, ten times as many made-up requests to every route of the gateway, kills of all that write state, of all around a storage backend, of a plugin that tells events and of its supervisor, of watcher and agent, a watched tree of a million files, schedules at every change of every clock, a Lua script that changes 100 times under 10,000 messages, and every test of real processes as a user without rights
	@cargo build --quiet --locked --bins -p talon -p talon-state -p talon-agent
	@cargo nextest run --locked -p talon-tests --test agent_long_session --run-ignored all
	@TALON_TEST_KILLS=200 cargo nextest run --locked -p talon-agent --test service killed_
	@cargo build --quiet --locked --bins -p talon-gateway -p misbehave
	@TALON_TEST_KILLS=100 cargo nextest run --locked -p talon-tests --test gateway_events killed_
	@TALON_TEST_SESSIONS=10000 cargo nextest run --locked -p talon-tests --test gateway --no-capture so_many_sessions
	@TALON_TEST_CROWD=1000 cargo nextest run --locked -p talon-tests --test gateway_events --no-capture crowd:: floods::
	@TALON_TEST_EXAMPLES=40 cargo nextest run --locked -p talon-tests --test gateway_contract no_request_gets
	@TALON_TEST_SCRIPT_CHANGES=100 cargo nextest run --locked -p talon-lua --test reload_under_load
	@TALON_TEST_KILLS=200 cargo nextest run --locked -p talon-tests --test state_crash
	@cargo build --quiet --locked -p valkey -p hello -p talon-tests --bins
	@TALON_TEST_KILLS=200 cargo nextest run --locked -p talon-tests --test storage whoever_is_killed
	@TALON_TEST_KILLS=200 cargo nextest run --locked -p talon-tests --test source_events kills_of
	@TALON_TEST_KILLS=200 cargo nextest run --locked -p talon-tests --test agent_schedule killed_leaves
	@cargo build --quiet --locked --bins -p talon-watch
	@TALON_TEST_KILLS=100 cargo nextest run --locked -p talon-tests --test shadow_watch killed_at_any_moment
	@TALON_TEST_FILES=1000000 cargo nextest run --locked -p talon-watch --test watcher a_tree_beyond
	@$(MAKE) --no-print-directory long-schedule
	@cargo build --quiet --locked --workspace --bins --tests
	@tests/scripts/test-unprivileged.sh all

long-schedule: ## compares when jobs run with the rule for changes of the clock, at every change of every time zone from 2000 to 2040, in as many threads as there are cores (40 s of processor time; two minutes on two busy cores, and the release build)
	@cargo test --quiet --locked --release -p talon-schedule --lib every_change -- --ignored --nocapture

hostile: deps deps-test ## attacks the jail and writes the table of what came of it to docs/hostile.md (1 to 2 minutes), and floods connections
	@cargo run --quiet --locked -p talon-tests --bin talon-hostile -- --table docs/hostile.md
	@cargo build --quiet --locked --bins -p talon -p talon-state -p talon-agent -p talon-gateway -p misbehave -p hello
	@cargo test --quiet --locked -p talon-tests --test hostile --test jail_faults flood

screenshots: deps-test ## screenshots of every view of the pages at three widths and in both themes, below target/screenshots
	@target/pages/python/bin/python -B tests/pages/screenshots.py target/screenshots

interop: deps deps-test ## tries other people's MCP servers and clients and writes docs/interop.md (10 minutes, longer the first time: it installs them below target/interop)
	@cargo build --quiet --locked --bins -p talon -p talon-state -p talon-agent -p talon-gateway -p talon-mcp -p talon-mcp-bridge -p talon-framed-bridge -p talon-service-bridge -p hello -p talon-tests
	@TALON_TEST_EVERY_REVISION=1 cargo nextest run --locked -p talon-tests --test go_plugin --test go_plugin_service --test opentalon --test opentalon_v0 --test mcp_conformance
	@target/debug/talon-interop --table docs/interop.md

PREFIX ?= /usr/local
install: ## builds and installs Talon below PREFIX (/usr/local): `talon` in bin, what it starts and its plugins in libexec/talon, the watcher's unit for users in lib/systemd/user, the SDK in share/talon
	cargo build --release --locked -p talon -p talon-state -p talon-agent -p talon-gateway -p talon-mcp -p talon-mcp-bridge -p talon-framed-bridge -p talon-service-bridge -p talon-top -p talon-watch -p talon-lua -p webhook -p mail -p valkey -p telegram -p slack -p chat-webhook
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/libexec/talon/plugins"
	install -m 0755 target/release/talon "$(DESTDIR)$(PREFIX)/bin/"
	install -m 0755 $(addprefix target/release/,talon-state talon-agent talon-gateway talon-mcp talon-mcp-bridge talon-framed-bridge talon-service-bridge talon-top talon-watch talon-lua) "$(DESTDIR)$(PREFIX)/libexec/talon/"
	install -m 0755 $(addprefix target/release/,webhook mail valkey telegram slack chat-webhook) "$(DESTDIR)$(PREFIX)/libexec/talon/plugins/"
	install -d "$(DESTDIR)$(PREFIX)/lib/systemd/user"
	sed 's|^ExecStart=/usr/bin/|ExecStart=$(PREFIX)/bin/|' deploy/systemd/talon-watch.service > "$(DESTDIR)$(PREFIX)/lib/systemd/user/talon-watch.service"
	chmod 0644 "$(DESTDIR)$(PREFIX)/lib/systemd/user/talon-watch.service"
	deploy/package/install-sdk.sh "$(DESTDIR)$(PREFIX)/share/talon"

package: ## builds the Debian package into target/package (PROFILE=debug for one of a debug build)
	@deploy/package/package.sh $(if $(filter command line environment,$(origin PROFILE)),$(PROFILE),release)

reproducible: ## builds the programs twice in two directories and compares them (PROFILE=debug is quicker)
	@deploy/package/reproducible.sh $(if $(filter command line environment,$(origin PROFILE)),$(PROFILE),release)

build: ## builds everything (PROFILE=release for an optimised build)
	cargo build --workspace --bins --locked $(CARGO_PROFILE)

plugins: deps-everything build ## puts the example plugins, ready to run, below target/plugins
	@plugins-examples/stage.sh $(PROFILE)

deps:
	@tests/scripts/deps.sh build

deps-everything:
	@tests/scripts/deps.sh everything

deps-test:
	@tests/scripts/deps.sh test

deps-bench:
	@tests/scripts/deps.sh bench

lint: ## formatting, clippy, licences and sources, docs: each without a warning
	@tests/scripts/lint.sh

doc: ## builds the API docs
	cargo doc --workspace --no-deps --locked

fmt: ## formats the Rust code
	cargo fmt --all

FUZZ_SECONDS ?= 60
fuzz: ## runs each fuzz target for a while (FUZZ_SECONDS=60)
	@tests/scripts/fuzz.sh $(FUZZ_SECONDS)

bench: deps deps-bench ## measures Talon beside what it replaces, quiet and loaded, and writes docs/benchmarks.md and target/bench.json (some 30 minutes, after building)
	@tests/bench/scripts/bench.sh full

bench-quick: deps deps-bench ## the quiet part in under 4 minutes: fewer and shorter rounds, into target/bench-quick.json
	@tests/bench/scripts/bench.sh quick

bench-loaded: deps deps-bench ## the quick one, and the ratios of the goals once more beside processes that burn CPU, into target/bench-loaded.json (some 7 minutes)
	@tests/bench/scripts/bench.sh loaded

bench-compare: ## says what got worse between two runs and fails if anything did (BEFORE=a.json AFTER=b.json)
	@test -n "$(BEFORE)" -a -n "$(AFTER)" || { echo "make bench-compare BEFORE=a.json AFTER=b.json" >&2; exit 2; }
	@cargo run --release --quiet --locked -p talon-bench --bin talon-bench -- compare "$(BEFORE)" "$(AFTER)"

bench-parts: deps ## measures the parts by themselves, by criterion: sanitizer, guard stack, store, state
	@tests/bench/scripts/bench-parts.sh

bench-flames: deps ## draws flame graphs of the two ways of a call into docs/images (needs perf and inferno)
	@tests/bench/scripts/flames.sh

MINUTES ?= 30
soak: deps ## looks whether memory, descriptors and threads stay flat under mixed load with crashes and reloads (MINUTES=30)
	@tests/bench/scripts/soak.sh $(MINUTES)
