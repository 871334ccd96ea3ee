# The Lost Update Lab. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
.DEFAULT_GOAL := help

.PHONY: help
help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/base.stamp: requirements/base.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/base.txt
	touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/base.stamp
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@

.PHONY: install
install: $(VENV)/base.stamp  ## create .venv with the locked run-time dependencies

.PHONY: install-dev
install-dev: $(VENV)/dev.stamp  ## the same with the development dependencies

.PHONY: demo
demo: $(VENV)/base.stamp  ## the six strategies under a swarm, the table, report/index.html; ends all it started
	@$(PY) -m loadtest.demo

.PHONY: serve
serve: $(VENV)/base.stamp  ## servers, web, background workers and the admin, until Ctrl-C
	@$(PY) -m loadtest.demo.serve

.PHONY: compare
compare: $(VENV)/base.stamp  ## compare on running servers: make compare ARGS="--strategy setnx --seconds 10"
	@$(PY) manage.py compare $(ARGS)

.PHONY: faults
faults: $(VENV)/base.stamp  ## the fault matrix on servers of its own: make faults ARGS="--quick"
	@$(PY) manage.py faults $(ARGS)

.PHONY: trust
trust: $(VENV)/base.stamp  ## one lock before all of them, and the answer: make trust ARGS="--lock mylocks:mine"
	@$(PY) manage.py trust $(ARGS)

.PHONY: soak
soak: $(VENV)/base.stamp  ## 100,000 postings while the service is killed at random: make soak ARGS="--seed 7"
	@$(PY) -m loadtest.soak $(ARGS)

.PHONY: soak-quick
soak-quick: $(VENV)/base.stamp  ## the same with 1,500 postings and 15 strikes: about a minute
	@$(PY) -m loadtest.soak --postings 1500 --strikes 15 --imports 2 --lines 50 $(ARGS)

# 3: nothing contradicts a claim, but some searches were cut short. The command has said which.
UNDECIDED = { code=$$?; [ $$code = 3 ] && echo "Some claims were left open (manage.py explore ended with 3)." || exit $$code; }

.PHONY: explore
explore: $(VENV)/base.stamp  ## every claim of every strategy, 2 workers, 1 fault; one to its end: make explore ARGS="--strategy token"
	@$(PY) manage.py explore $(ARGS) || $(UNDECIDED)

.PHONY: explore-deep
explore-deep: $(VENV)/base.stamp  ## every schedule of 3 workers, up to 10 minutes for each strategy
	@$(PY) manage.py explore --workers 3 --budget 600 --until exhausted $(ARGS) || $(UNDECIDED)

.PHONY: bench
bench: $(VENV)/base.stamp  ## what locks and strategies cost, against peers and the limit: make bench ARGS="--quick"
	@$(PY) -m loadtest.bench $(ARGS)

# Tests wait more than they compute: more worker processes than cores. Each has servers of its own.
WORKERS ?= 5
SIDE_BY_SIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(VENV)/dev.stamp  ## the tests, on real servers; the last lines name what is left to test-deep
	$(PY) -m pytest -m "not whole_command and not deep" $(SIDE_BY_SIDE) $(ARGS)

# A whole command has processes for all cores, kills servers and measures: in one session, after the others.
.PHONY: test-deep
test-deep: $(VENV)/dev.stamp  ## the long searches, and whole commands from beginning to end; SHORT=1 as CI does
	$(PY) -m pytest -m deep $(SIDE_BY_SIDE) $(if $(SHORT),--short) $(ARGS)
	$(PY) -m pytest -m whole_command $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/dev.stamp  ## thousands of bad bodies, files and orders of requests: make fuzz ARGS="--hypothesis-seed 7"
	$(PY) -m pytest tests/fuzz --hypothesis-profile=fuzz --timeout 3600 $(ARGS)

.PHONY: lint
lint: $(VENV)/dev.stamp  ## ruff, mypy on all packages, and import-linter: which package may import which
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

.PHONY: secrets
secrets: $(VENV)/dev.stamp  ## nothing in the repository looks like a password, key or token (as pre-commit asks)
	@git ls-files --error-unmatch Makefile >/dev/null  # without git there would be no file to look at
	git ls-files -z ':!requirements' | xargs -0 $(VENV)/bin/detect-secrets-hook

.PHONY: audit
audit: $(VENV)/dev.stamp  ## known vulnerabilities of the locked packages; says "not run" when no service can be asked
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(PY) -m pip_audit --disable-pip --require-hashes --progress-spinner off \
	  -r requirements/base.txt -r requirements/dev.txt > "$$log" 2>&1; code=$$?; cat "$$log"; \
	if grep -q "^Found " "$$log"; then exit 1; fi; \
	unknown=$$(grep -c "could not be audited" "$$log"); \
	if [ "$$unknown" = 0 ] && [ "$$code" = 0 ]; then exit 0; fi; \
	echo "audit: not run ($$unknown packages unknown to the service, or no service reached): this says nothing"; exit 3

.PHONY: lock
lock: $(VENV)/dev.stamp  ## resolve pyproject.toml into the hashed lock files
	$(PY) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 --custom-compile-command "make lock" --extra lab pyproject.toml -o requirements/base.txt
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 --custom-compile-command "make lock" --extra lab --extra dev -c requirements/base.txt pyproject.toml -o requirements/dev.txt
