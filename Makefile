# The Lost Update Lab. `make help` lists what there is.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
.DEFAULT_GOAL := help

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/base.stamp: requirements/base.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/base.txt
	touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/base.stamp
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@

# The command, as the wheel has it. An editable install would also declare the pytest plugin, which pyproject.toml loads.
$(VENV)/bin/lost-update-lab: $(VENV)/base.stamp
	printf '#!/bin/sh\nPYTHONPATH="%s$${PYTHONPATH:+:$$PYTHONPATH}" exec "%s" -m lost_update_lab "$$@"\n' \
	  "$(CURDIR)" "$(abspath $(PY))" > $@
	chmod +x $@

.PHONY: install
install: $(VENV)/base.stamp $(VENV)/bin/lost-update-lab  ## create .venv with the locked run-time requirements

.PHONY: install-dev
install-dev: $(VENV)/dev.stamp $(VENV)/bin/lost-update-lab  ## add the development requirements

.PHONY: demo
demo: $(VENV)/base.stamp  ## compare six strategies under a swarm; print the table, write report/index.html
	@$(PY) -m loadtest.demo

.PHONY: serve
serve: $(VENV)/base.stamp  ## run the servers, the web, the background workers and the admin until Ctrl-C
	@$(PY) -m loadtest.demo.serve

.PHONY: compare
compare: $(VENV)/base.stamp  ## compare strategies on running servers: make compare ARGS="--strategy setnx --seconds 10"
	@$(PY) manage.py compare $(ARGS)

.PHONY: faults
faults: $(VENV)/base.stamp  ## run the fault matrix on its own servers: make faults ARGS="--quick"
	@$(PY) manage.py faults $(ARGS)

.PHONY: trust
trust: $(VENV)/base.stamp  ## put one lock through compare, faults and explore: make trust ARGS="--lock mylocks:mine"
	@$(PY) manage.py trust $(ARGS)

.PHONY: soak
soak: $(VENV)/base.stamp  ## apply 100,000 postings while the service is killed at random: make soak ARGS="--seed 7"
	@$(PY) -m loadtest.soak $(ARGS)

.PHONY: soak-quick
soak-quick: $(VENV)/base.stamp  ## the same with 1,500 postings and 15 kills, in about a minute
	@$(PY) -m loadtest.soak --postings 1500 --strikes 15 --imports 2 --lines 50 $(ARGS)

# Exit code 3: nothing contradicts a claim, but some searches were cut short. The command has named them.
UNDECIDED = { code=$$?; [ $$code = 3 ] && echo "Some claims were left open (manage.py explore ended with 3)." || exit $$code; }

.PHONY: explore
explore: $(VENV)/base.stamp  ## check each claim of each strategy with 2 workers and 1 fault. One to its end: make explore ARGS="--strategy token"
	@$(PY) manage.py explore $(ARGS) || $(UNDECIDED)

.PHONY: explore-deep
explore-deep: $(VENV)/base.stamp  ## search the schedules of 3 workers, up to 10 minutes for each strategy
	@$(PY) manage.py explore --workers 3 --budget 600 --until exhausted $(ARGS) || $(UNDECIDED)

.PHONY: bench
bench: $(VENV)/base.stamp  ## measure locks and strategies against peers and the limit: make bench ARGS="--quick"
	@$(PY) -m loadtest.bench $(ARGS)

# Tests wait more than they compute: more worker processes than cores. Each has servers of its own. pytest-timeout ends
# a worker process whose test hangs. What was left for it is lost, and pytest-xdist would wait for that for ever.
WORKERS ?= 4
SIDE_BY_SIDE = --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -n

.PHONY: test
test: $(VENV)/dev.stamp  ## run the tests on real servers; the last lines name what test-deep runs
	$(PY) -m pytest -m "not whole_command and not deep" $(SIDE_BY_SIDE) $(WORKERS) $(ARGS)

# A whole command starts servers, a web server and a swarm of its own: three at a time, after the others.
COMMAND_WORKERS ?= 3

.PHONY: test-deep
test-deep: $(VENV)/dev.stamp  ## run the long searches and the whole commands; SHORT=1 runs what CI runs
	$(PY) -m pytest -m deep $(SIDE_BY_SIDE) $(WORKERS) $(if $(SHORT),--short) $(ARGS)
	$(PY) -m pytest -m whole_command $(SIDE_BY_SIDE) $(COMMAND_WORKERS) $(if $(SHORT),--short) $(ARGS)

.PHONY: museum
museum: $(VENV)/base.stamp  ## explore the museum's cases, broken and mended; write docs/museum.md: make museum ARGS="--case 01"
	@$(PY) -m museum $(ARGS)

.PHONY: museum-packages
museum-packages: $(VENV)/base.stamp  ## explore packages of the registry, each in an environment of its own; needs the registry
	@$(PY) -m museum.packages $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/dev.stamp  ## send thousands of bad bodies, files and orders of requests: make fuzz ARGS="--hypothesis-seed 7"
	$(PY) -m pytest tests/fuzz --hypothesis-profile=fuzz --timeout 3600 $(ARGS)

.PHONY: lint
lint: $(VENV)/dev.stamp  ## run ruff, mypy and import-linter
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

.PHONY: secrets
secrets: $(VENV)/dev.stamp  ## check that nothing in the repository looks like a password, key or token
	@git ls-files --error-unmatch Makefile >/dev/null  # without git there would be no files to check
	git ls-files -z ':!requirements' ':!docs/data' | xargs -0 $(VENV)/bin/detect-secrets-hook

.PHONY: audit
audit: $(VENV)/dev.stamp  ## look for known vulnerabilities of the locked packages; "not run" if no service answers
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	$(PY) -m pip_audit --disable-pip --require-hashes --progress-spinner off \
	  -r requirements/base.txt -r requirements/dev.txt > "$$log" 2>&1; code=$$?; cat "$$log"; \
	if grep -q "^Found " "$$log"; then exit 1; fi; \
	unknown=$$(grep -c "could not be audited" "$$log"); \
	if [ "$$unknown" = 0 ] && [ "$$code" = 0 ]; then exit 0; fi; \
	echo "audit: not run ($$unknown packages unknown to the service, or no service reached): this says nothing"; exit 3

LAB = --extra servers --extra django --extra mysql --group lab

.PHONY: lock
lock: $(VENV)/dev.stamp  ## resolve pyproject.toml into the hashed requirements
	$(PY) -m pip install --quiet uv
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 --custom-compile-command "make lock" $(LAB) pyproject.toml -o requirements/base.txt
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11 --custom-compile-command "make lock" $(LAB) --extra sqlalchemy --group dev -c requirements/base.txt pyproject.toml -o requirements/dev.txt
