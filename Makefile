# Two commands matter: `make demo` and `make test`. Each sets up what it needs; a second call is quick.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-slow test-deploy test-browser mutants lint bench docs lock clean

demo: $(READY)
	@$(BIN)/discreet demo

test: lint
	$(BIN)/python -m pytest

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

test-deploy: .venv/.flower ## a real SuperLink and real clients, with TLS and keys, on this machine
	$(BIN)/python -m pytest tests/deploy -m deploy -n 2 --dist loadfile --timeout 900

test-browser: .venv/.browser ## the planner's page in Chromium without a window (Debian's package chromium)
	$(BIN)/python -m pytest tests/browser -m browser -n 0

mutants: $(READY) ## puts each known fault into a copy of the package; its test must fail (docs/mutants.md)
	$(BIN)/python -m tests.mutants.run

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/names.py

bench: .venv-bench/.ready ## accounting, DP-SGD and secure sums beside their peers, integer noise, and a round where there is a GPU
	.venv-bench/bin/python benchmarks/accounting.py
	.venv-bench/bin/python benchmarks/dp_sgd.py
	.venv-bench/bin/python benchmarks/secagg.py
	.venv-bench/bin/python benchmarks/discrete_noise.py
	@if .venv-bench/bin/python -c "import sys, torch; sys.exit(not torch.cuda.is_available())"; then \
		.venv-bench/bin/python benchmarks/round.py; \
	else echo "There is no GPU here, so benchmarks/round.py was left out."; fi

docs: .venv/.docs ## the documentation site, into site/; a warning or a dead link fails it
	$(BIN)/python tools/toml_reference.py
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -b html . site

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
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

# Peers pin what we don't, so they live apart, with our package beside them.
.venv-bench/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install --quiet --requirement benchmarks/requirements.txt
	.venv-bench/bin/pip install --quiet --no-deps --editable .
	@touch $@

lock: ## resolves every extra together and writes constraints.txt
	$(PYTHON) tools/lock.py

clean:
	rm -rf .venv .venv-bench build site
