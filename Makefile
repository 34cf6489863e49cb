# make demo   set everything up and run the main job to a report
# make test   run every test
# make test-all  those besides that take long: statistics in full, whole campaigns, large volumes
# make t CRATE=core, make t PY=tests/python/test_quantity.py  tests of one crate, or of some files
# make lint   formatting, lints and types; make hooks  formats and lints before each commit
# make bench  figure, peer, ratio and bar of every benchmark, in one run and one table
# make nightly  campaigns against the whole program: 100 kills, 10^6 frames between real hosts with planted faults, 40 strikes at a network that the model plays, run directories damaged in 1000 ways, 200 faults of a lab, one test file on two benches, ten minutes at 20 000 messages a second with flat memory, 2000 series of each family against its intervals (within 6 h on two idle cores)
# make fuzz   every fuzz target for FUZZ_SECONDS each (180), findings kept in fuzz/artifacts
# make sdist wheel  the archives to publish, in dist/; make check-dist installs the wheel into an empty environment and simulates the demo with it
# make agent-static deb  the agent as one file that needs nothing of its host, and as a Debian package, in dist/; make check-deploy tries package, static agent and wheel on clean hosts
# make release  everything that is published, with checksums and a bill of materials; make audit  known vulnerabilities of what is in it
# make docs   the documentation as a site, in target/site
# make studies  every study that comes with the program in its quick form, one line each
# make gallery  draw the pictures of docs/guide/gallery.md again
# make notebook  execute the example notebook and keep its outputs
# make reference  write the generated pages of docs/reference: command line and Python

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# Images of containers set it, and then each of hundreds of processes compiles every module that it imports.
unexport PYTHONDONTWRITEBYTECODE
# What tests run: the packages of $(VENV), and module and agent out of the same artefacts as `cargo test`.
TESTING := target/testing
PYTEST := env PATH="$(CURDIR)/$(BIN):$$PATH" $(TESTING)/bin/python -m pytest
# A file in one process, in the order of `LONGEST` in tests/conftest.py.
BY_FILE := --dist loadfile --no-loadscope-reorder
RUST_SOURCES := $(shell git ls-files 'crates/*' Cargo.toml Cargo.lock 2>/dev/null)
SOURCES := $(shell git ls-files 'crates/*' Cargo.toml Cargo.lock pyproject.toml tools python docs examples 2>/dev/null)

.PHONY: help setup developer demo built t test test-computing test-waiting test-alone test-all lint style hooks format bench fuzz nightly sdist wheel check-dist release audit agent-static deb check-deploy check-tsn-vm docs studies notebook gallery proto language json-schemas reference clean

help:
	@sed -n '1,/^$$/s/^# //p' Makefile

# `make` of its own so that packages come while the compiler works. PROFILE=dist builds for speed, which takes twice as long.
PROFILE ?= release
INSTALLED := $(VENV)/.installed-$(PROFILE)

setup:
	@$(MAKE) --no-print-directory --jobs=2 $(INSTALLED)

# With what only developers need.
developer: setup $(VENV)/.packages

$(VENV)/.python:
	@tools/prerequisites
	"$$(tools/prerequisites --python)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@touch $@

PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

# The tests that these packages bring of themselves are 28 MB, and nobody runs them here.
$(VENV)/.runtime: $(VENV)/.python pyproject.toml
	@echo "installing packages into $(VENV)"
	$(BIN)/python tools/requirements.py | $(PIP_INSTALL) --requirement /dev/stdin
	@find $(VENV)/lib/python*/site-packages/{numpy,scipy,matplotlib} -type d -name tests -prune -exec rm -r {} +
	@touch $@

$(VENV)/.packages: $(VENV)/.runtime
	@echo "installing what only developers need into $(VENV)"
	$(BIN)/python tools/requirements.py dev docs | $(PIP_INSTALL) --requirement /dev/stdin
	@touch $(VENV)/.docs $@

# All that the documentation site needs: neither a compiler nor what the program is made of.
$(VENV)/.docs: $(VENV)/.python pyproject.toml
	@echo "installing what builds the documentation into $(VENV)"
	$(BIN)/python tools/requirements.py docs | $(PIP_INSTALL) --requirement /dev/stdin
	@touch $@

# What takes longest begins first, and needs no package.
target/.compiled-$(PROFILE): $(RUST_SOURCES)
	@tools/prerequisites
	@echo "building wiregauge, profile $(PROFILE) (some minutes the first time)"
	@mkdir -p target
	"$$(tools/prerequisites --python)" tools/compiling.py $(PROFILE)
	@touch $@

$(INSTALLED): target/.compiled-$(PROFILE) $(VENV)/.runtime $(SOURCES)
	@rm -rf target/wheel-$(PROFILE)
	@mkdir -p target/wheel-$(PROFILE)
	$(BIN)/python tools/local_wheel.py target/wheel-$(PROFILE) $(PROFILE)
	$(PIP_INSTALL) --no-deps --force-reinstall target/wheel-$(PROFILE)/wiregauge-*.whl
	@rm -f $(VENV)/.installed-*
	@touch $@

# The first name that is free: results of an earlier demo are somebody's.
demo: DEMO := $(shell n=1; d=demo-run; while [ -e "$$d" ]; do n=$$((n + 1)); d=demo-run-$$n; done; echo "$$d")
demo: setup
	mkdir $(DEMO)
	$(BIN)/wiregauge run examples/demo.xml --bench sim --out $(DEMO)/sim
	@tools/demo-live $(BIN)/wiregauge $(DEMO)
	@[ $(PROFILE) = dist ] || echo "built to be here soon; make setup PROFILE=dist builds for speed, as what is published and make bench are"

# `make --jobs=2 built` downloads while it compiles.
built: $(VENV)/.packages target/.built-tests

# Of the whole workspace at once: of single crates, cargo would choose other features and build most of it again.
target/.built-tests: $(RUST_SOURCES)
	@tools/prerequisites
	cargo build --workspace --lib --bins --tests --locked --quiet
	@touch target/.built $@

# What Python tests need of it, after a change in `crates`.
target/.built: $(RUST_SOURCES)
	@tools/prerequisites
	cargo build --workspace --lib --bins --locked --quiet
	@touch $@

# It leads to the Python files as they stand and to what `built` made: neither is installed again when it changes.
$(TESTING)/.installed: $(VENV)/.packages pyproject.toml tools/local_wheel.py | target/.built
	rm -rf $(TESTING) target/wheel
	$(BIN)/python -m venv --without-pip $(TESTING)
	$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		>$$($(TESTING)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/packages.pth
	mkdir -p target/wheel
	$(BIN)/python tools/local_wheel.py target/wheel
	$(BIN)/pip --quiet --disable-pip-version-check --python $(TESTING)/bin/python install --no-deps --no-compile --ignore-installed \
		target/wheel/wiregauge-*.whl
	ln -sfn "$(CURDIR)/target/debug/lib_native.so" python/wiregauge/_native.abi3.so
	ln -sfn "$(CURDIR)/target/debug/wiregauge-agent" $(TESTING)/bin/wiregauge-agent
	@touch $@

# One crate, or files of Python tests: `make t CRATE=core`, `make t PY="tests/python/test_limits.py -k late"`.
t: $(if $(PY),$(TESTING)/.installed)
	@[ -n "$(CRATE)$(PY)" ] || { echo "make t CRATE=core, or make t PY=tests/python/test_quantity.py"; exit 2; }
	$(if $(CRATE),cargo test --locked --quiet -p wg-$(CRATE) --all-features $(TEST_OPTIONS))
	$(if $(PY),$(PYTEST) $(PY) $(TEST_OPTIONS))

# `make` of its own so that both go side by side: who waits most of the time goes first, and who computes fills the time.
test:
	@$(MAKE) --no-print-directory --jobs=2 built
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-computing test-waiting
	@$(MAKE) --no-print-directory test-alone

test-computing: $(TESTING)/.installed
	nice -n 5 cargo test --workspace --locked --quiet
	nice -n 5 $(PYTEST) tests/python --numprocesses auto --maxprocesses 4 $(BY_FILE) $(TEST_OPTIONS)

# Real frames between namespaces, which are private: two runs do not meet.
test-waiting: $(TESTING)/.installed
	$(PYTEST) tests/e2e -m 'not alone and not deploy' --numprocesses 3 $(BY_FILE) $(TEST_OPTIONS)

# What a busy machine would change has the machine to itself.
test-alone: $(TESTING)/.installed
	$(PYTEST) tests/e2e -m 'alone and not deploy' $(TEST_OPTIONS)

test-all:
	$(MAKE) test TEST_OPTIONS=--all
	cargo test --locked --quiet --release -p wg-core --test it as6802 -- --ignored

lint: style
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

# All that needs nothing compiled.
style: $(VENV)/.packages
	cargo fmt --all --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

hooks:
	git config core.hooksPath tools/hooks

format: $(VENV)/.packages
	cargo fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench:
	@$(MAKE) --no-print-directory developer PROFILE=dist
	@rows=$$(mktemp); trap 'rm -f $$rows' EXIT; export WIREGAUGE_BENCH_ROWS=$$rows; \
	for part in kernels round_trip generator ns3.compare log_processor judging robot_modes probe host_model live_network bounds zoom watching; do \
		echo "== $$part"; $(BIN)/python -m benchmarks.$$part $(BENCH_OPTIONS) || echo "$$part: no figure"; \
	done; echo; $(BIN)/python -m benchmarks.table $$rows

fuzz:
	@tools/fuzz $(FUZZ_SECONDS)

nightly: developer
	cd tests && ../$(BIN)/python -m campaigns.kills
	cd tests && ../$(BIN)/python -m campaigns.live_faults
	cd tests && ../$(BIN)/python -m campaigns.live_strikes
	cd tests && nice ../$(BIN)/python -m campaigns.damage
	cd tests && ../$(BIN)/python -m campaigns.lab_faults
	cd tests && ../$(BIN)/python -m campaigns.lab_sweep
	cd tests && ../$(BIN)/python -m campaigns.steady
	nice $(BIN)/python -m benchmarks.coverage --check

sdist: $(VENV)/.python
	$(BIN)/pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build --sdist --outdir dist .

wheel: $(VENV)/.python
	$(BIN)/pip wheel --disable-pip-version-check --no-deps --wheel-dir dist .

check-dist: sdist wheel
	tools/check-dist

# AGENT_TARGET=aarch64-unknown-linux-gnu, or another that is installed: for other hosts than this one.
AGENT_TARGET ?= $(shell rustc -vV | sed -n 's/^host: //p')
AGENT_STATIC := dist/wiregauge-agent-$(AGENT_TARGET)

# What is published, up to the tag.
release:
	rm -rf dist
	@$(MAKE) --no-print-directory developer check-dist agent-static deb
	$(BIN)/python tools/sbom.py dist/sbom.json
	cd dist && sha256sum -- * >SHA256SUMS
	@$(MAKE) --no-print-directory audit

# Known vulnerabilities of what is linked and installed; what cannot be asked fails.
audit: $(VENV)/.packages
	@command -v cargo-audit >/dev/null || { echo "audit: cargo-audit is not here: cargo install cargo-audit"; exit 2; }
	cargo audit
	$(PIP_INSTALL) pip-audit
	$(BIN)/python tools/requirements.py | $(BIN)/pip-audit --strict --requirement /dev/stdin

agent-static: $(AGENT_STATIC)

$(AGENT_STATIC): $(SOURCES)
	AGENT_TARGET=$(AGENT_TARGET) tools/agent-static $@

deb: $(AGENT_STATIC)
	"$$(tools/prerequisites --python)" tools/make_deb.py $(AGENT_STATIC)

# The builds take a quarter of an hour: what is missing is said before them.
check-deploy:
	@tools/prerequisites mmdebstrap
	@$(MAKE) --no-print-directory developer deb wheel
	$(BIN)/python -m pytest tests/e2e/test_deployed.py -m deploy

docs: $(VENV)/.docs
	$(BIN)/python tools/doc_site.py target/site

studies: developer
	$(BIN)/python tools/studies.py

gallery: $(TESTING)/.installed
	$(TESTING)/bin/python tools/gallery.py

notebook: developer
	$(BIN)/python tools/notebook.py

proto: developer
	$(BIN)/python tools/generate_rpc.py

# What follows from the declaration of the test language, and from that of the measures that a test can name.
language: $(TESTING)/.installed
	$(TESTING)/bin/python tools/limit_names.py
	$(TESTING)/bin/python tools/language.py

json-schemas: $(TESTING)/.installed
	$(TESTING)/bin/python tools/json_schemas.py

# Minutes, and programs of the distribution that nothing else needs: no part of `make test`.
check-tsn-vm: developer
	@tests=$$(cargo test -p wg-agent -p wg-net --lib --locked --no-run --message-format=json | \
		$(BIN)/python -c 'import json, sys; print(*filter(None, (json.loads(line).get("executable") for line in sys.stdin)))'); \
	tools/check-tsn-vm "$${TSN_VM:-target/tsn-vm}" "$$PWD/$(BIN)/wiregauge" $$tests

reference: $(TESTING)/.installed
	$(TESTING)/bin/python tools/reference_pages.py
	$(TESTING)/bin/python tools/study_pages.py

clean:
	rm -rf $(VENV) target
