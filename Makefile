# Start with two targets: `make demo` builds and runs the race, `make test` runs all tests. `make accelerate` is the
# accelerator demo of the README.

CARGO ?= cargo

.PHONY: help demo accelerate test kubernetes reference bench fuzz clean

help:
	@echo "make demo   build, race the shipped pages, write demo/race.html"
	@echo "make accelerate  build, load a page in Chromium with and without the accelerator, write demo/accelerated.svg"
	@echo "make test   everything that must hold: format, lints, tests against real peers, documentation"
	@echo "make reference  write the reference of the command line, of the configuration and of JSON output from the code"
	@echo "make kubernetes  check spdy-cri with a Kubernetes API server, kubectl and kube-rs; the first run takes 10 minutes"
	@echo "make fuzz   an hour of fuzzing for each parser and state machine (SECONDS=60 for a minute)"
	@echo "make bench  how fast the parts are, what a page load costs, and a race against other servers"
	@echo "make clean  remove what the others made"

# A race needs no optional feature. The profile is the one that builds fastest.
demo:
	$(CARGO) build --profile demo --locked -p spdy-cli --no-default-features
	@mkdir -p demo
	@$(CARGO) run --profile demo --locked --quiet -p spdy-cli --no-default-features -- race --report demo/race.html

accelerate:
	scripts/accelerate-demo

# One build serves lints, tests and documentation: `scripts/rustc-with-lints` also lints, and `scripts/rustdoc-with-pages` also writes
# the documentation, and the public API that `public_api` then compares. Meanwhile `scripts/setup-peers` installs the peers of the tests. `scripts/attended`
# reports and stops a test that hangs. A test with thousands of slow clients needs as many open files. The fuzzer has a fixed seed
# here, so that the result for one tree is reproducible. `make fuzz` uses random seeds.
CHECKED = RUSTC_WORKSPACE_WRAPPER="$(CURDIR)/scripts/rustc-with-lints" RUSTDOC="$(CURDIR)/scripts/rustdoc-with-pages" $(CARGO)
test:
	$(CARGO) fmt --all -- --check
	$(CARGO) fmt --manifest-path examples/Cargo.toml -- --check
	scripts/setup-peers & peers=$$!; $(CHECKED) test --no-run --workspace --all-targets --locked; built=$$?; wait $$peers && exit $$built
	$(CARGO) clippy --manifest-path interop/zlib/Cargo.toml --features zlib-rs --locked -- -D warnings
	ulimit -Sn 16384 || true; scripts/attended 900 env $(CHECKED) test --workspace --locked
	$(CHECKED) test --workspace --locked --test public_api -- --ignored
	$(CHECKED) check -p spdy-client --locked --no-default-features --features ring
	scripts/attended 300 env $(CHECKED) test --manifest-path examples/Cargo.toml --locked --target-dir target
	BUILD=dev SEED=1 scripts/fuzz 2
	$(MAKE) demo
	scripts/bench-check

# Writes the pages that `make test` compares with the code.
reference:
	UPDATE_DOCS=1 $(CARGO) test --locked -p spdy-cli --bin spdy reference::

# Not in `make test`: it builds Kubernetes.
kubernetes:
	scripts/kubernetes

SECONDS ?= 3600
fuzz:
	scripts/fuzz $(SECONDS)

# HARS is a folder of recordings, to measure header compression. The repository has none.
HARS ?=
bench:
	$(CARGO) bench --workspace --bench '*' --locked
	scripts/cpu-per-load
	scripts/header-bytes $(HARS)
	scripts/lulic-twice
	scripts/setup-peers
	scripts/setup-race-peers
	scripts/race-peers
	$(CARGO) test --release --locked -p spdy --test soak -- --ignored --nocapture
	$(CARGO) run --release --locked -p spdy-server --example many_sessions

clean:
	$(CARGO) clean
	rm -rf demo release interop/node-spdy/node_modules interop/netty/target interop/kubernetes/target interop/zlib/target
