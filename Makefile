# Start with `make demo` or `make test`. Each target installs what it needs; the next call reuses it.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: drill release demo test test-random fuzz coverage test-slow test-deploy test-browser test-gpu test-floors test-newest mutants lint security bench pages docs lock clean

demo: $(READY)
	@$(BIN)/discreet demo

test: lint
	$(BIN)/python -m pytest $(TESTS)

test-random: $(READY) ## run the property tests with fresh examples; .hypothesis/ keeps those that failed
	$(BIN)/python -m pytest -m 'hypothesis and not deploy and not browser' --hypothesis-profile random

fuzz: .venv/.flower ## damage files and messages at random for MINUTES (10), and keep those that a parser fails on in tests/fuzz/corpus
	$(BIN)/python -m tests.fuzz.run --minutes $(or $(MINUTES),10)

coverage: $(READY) ## run the tests and show which share of branches they take; three rooms must have 95 % (tools/branch_coverage.py)
	rm -rf build/coverage
	$(BIN)/coverage run -m pytest $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage json --quiet $(if $(ROOMS),--include=$$(printf 'src/discreet/%s/*,' $(ROOMS))) -o build/coverage/report.json
	$(BIN)/python tools/branch_coverage.py build/coverage/report.json

test-slow: $(READY) ## run the long statistical tests, half an hour of two cores; PART=2/6 runs the third sixth of them
	$(BIN)/python -m pytest -m slow --timeout 1800 $(if $(PART),--part $(PART))

test-deploy: .venv/.flower ## run a real SuperLink and real clients, with TLS and keys, on this machine; all, or those in TESTS
	$(BIN)/python -m pytest $(or $(TESTS),tests/deploy) -m deploy -n 2 --dist loadfile --timeout 900

drill: .venv/.flower ## kill processes of a real deployment 200 times, and write docs/reliability.md
	$(BIN)/python -m tests.drill

test-browser: .venv/.browser ## test the pages in headless Chromium (Debian's package chromium)
	$(BIN)/python -m pytest tests/browser -m browser -n 0

test-gpu: $(READY) ## run the tests that need a CUDA device and write docs/gpu_tests.md; COMMIT names it outside of git
	$(BIN)/python tools/gpu_tests.py $(if $(COMMIT),--commit $(COMMIT))

test-floors: $(READY) ## run all tests with the lowest versions that pyproject.toml allows, and write docs/versions.md
	$(BIN)/python tools/version_tests.py floors --python $(PYTHON)

test-newest: $(READY) ## run all tests with the newest versions of everything, and write docs/versions.md
	$(BIN)/python tools/version_tests.py newest --python $(PYTHON)

mutants: $(READY) ## insert each known fault into a copy of the package; its test must fail (docs/mutants.md)
	$(BIN)/python -m tests.mutants.run

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/names.py

security: .venv-security/.ready ## faults that bandit knows in the code, and published faults of the locked libraries (asks a service)
	.venv-security/bin/bandit --quiet --configfile pyproject.toml --recursive src
	.venv-security/bin/pip-audit --strict --require-hashes --disable-pip --requirement locks/all.txt

bench: .venv-bench/.ready ## compare ours with its peers on this machine, and write docs/results/speed.md; BENCH_OPTIONS="--case NAME --go-on"
	.venv-bench/bin/python benchmarks --write $(BENCH_OPTIONS) # by its folder: a peer installs a package of this name

pages: $(READY) ## write what follows from the code: the file map, the TOML reference and the lists of public names
	$(BIN)/python tools/file_map.py
	$(BIN)/python tools/toml_reference.py
	$(BIN)/python tools/experiment_schema.py
	$(BIN)/python tools/public_names.py

docs: .venv/.docs pages ## build the documentation site into site/; a warning or a dead link is an error
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -b html . site

# An environment that is there keeps its interpreter, whatever PYTHON names for another one.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,lint]'
	@touch $@

.venv/.flower: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,flower,ray]'
	@touch $@

.venv/.docs: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,docs]'
	@touch $@

.venv/.browser: $(READY)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,browser]'
	@touch $@

# The other libraries pin versions that we don't, so they are in a separate environment, with our package.
.venv-bench/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --requirement benchmarks/requirements.txt
	.venv-bench/bin/pip install --quiet --no-deps --editable .
	@touch $@

release: .venv-release/.ready ## build sdist and wheel, and install them into empty environments (docs/releasing.md); publishes nothing
	.venv-release/bin/python tools/release.py $(RELEASE_OPTIONS)

.venv-release/.ready: Makefile
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/pip install --quiet 'build>=1.2,<2' 'twine>=6.1,<8'
	@touch $@

.venv-security/.ready: Makefile
	$(PYTHON) -m venv .venv-security
	.venv-security/bin/pip install --quiet 'bandit>=1.9,<2' 'pip-audit>=2.9,<3' 'uv>=0.9,<1'
	@touch $@

lock: .venv-security/.ready ## resolve all extras together, write constraints.txt and locks/; LOCK_OPTIONS=--keep changes only what it must
	.venv-security/bin/python tools/lock.py $(LOCK_OPTIONS)

clean:
	rm -rf .venv .venv-* build dist site jupyter_execute
