# make demo | test | dev | check | docs | wheel | up | clean.  Needs Python 3.11 and git; nothing else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PY := $(VENV)/bin/python
UV := uv==0.13.9
CYCLONEDX := cyclonedx-bom==7.5.0
PACKAGES := lakehub ingestion quality incidents frontend

.PHONY: help setup demo test soak soak-capture soak-index soak-pipelines soak-replica dev up check lock audit sbom docs architecture wheel wheel-demo airflow bench-peers format clean

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: $(VENV)/.installed ## the virtual environment, a Java runtime and the table format's jar: once
	@$(PY) -m lakehub.setup

$(VENV)/.installed: requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and f"Python 3.11 is needed, this is {sys.version.split()[0]}. Name one: make PYTHON=/path/to/python3.11")'
	@echo "Setting up $(VENV): the pinned requirements, about a minute the first time"
	@$(PYTHON) -m venv $(VENV) || { echo "On Debian: apt-get install python3.11-venv" >&2; exit 1; }
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

demo: setup ## the whole story on real flights, then the web application; DEMO_SERVE=0 ends after the story
	@$(PY) -m lakehub.demo $(if $(filter 0,$(DEMO_SERVE)),--no-serve)

test: setup ## every test that this machine can run; SUITES="unit web" for some, SUITES=no-spark for all but one
	@$(PY) -m tests $(SUITES)

soak: setup ## fault rounds against a running instance (docs/soak.md): ROUNDS=5 SEED=7 DATABASE=sqlite|postgresql|both FAULTS=pattern
	@$(PY) -m tests.soak --rounds $(or $(ROUNDS),5) --database $(or $(DATABASE),both) $(if $(SEED),--seed $(SEED)) --faults '$(FAULTS)'

soak-capture: setup ## fault rounds for captured tables (docs/soak.md): ROUNDS=3 SEED=7 CHANGELOG=segments|kafka|both FAULTS=pattern EVENTS=pattern; BROKEN=1: do they fail where a line is broken?
ifdef BROKEN
	@$(PY) -m tests.soak.capture.broken --changelog $(or $(CHANGELOG),segments)
else
	@$(PY) -m tests.soak.capture --rounds $(or $(ROUNDS),3) --changelog $(or $(CHANGELOG),both) $(if $(SEED),--seed $(SEED)) --faults '$(FAULTS)' --events '$(EVENTS)'
endif

soak-index: setup ## the Global Index while HBase and jobs are killed (docs/soak.md): KEYS=1000000 BATCHES=30 SEED=7 FAULTS=pattern; BROKEN=1: does it fail where a line is broken?
ifdef BROKEN
	@$(PY) -m tests.soak.index.broken
else
	@$(PY) -m tests.soak.index --keys $(or $(KEYS),1000000) --batches $(or $(BATCHES),30) $(if $(SEED),--seed $(SEED)) --faults '$(FAULTS)'
endif

soak-pipelines: setup ## modelled tables of real flights while jobs die and overtake each other (docs/soak.md): ROUNDS=40 SEED=7 IDLE=1 FAULTS=pattern; BROKEN=1: does it fail where a line is broken?
ifdef BROKEN
	@$(PY) -m tests.soak.pipelines.broken
else
	@$(PY) -m tests.soak.pipelines --rounds $(or $(ROUNDS),40) $(if $(SEED),--seed $(SEED)) $(if $(IDLE),--idle) --faults '$(FAULTS)'
endif

soak-replica: setup ## a replica whose runs are killed at any moment (docs/soak.md): KILLS=20 SEED=7
	@$(PY) -m tests.soak.replica --kills $(or $(KILLS),20) $(if $(SEED),--seed $(SEED))

dev: setup ## web, workers and beat, restarted when the code changes
	@LAKEHUB_DEBUG=1 $(PY) manage.py up --reload

up: setup ## web, workers and beat
	@$(PY) manage.py up

check: $(VENV)/.installed ## format, lint, types, imports, migrations, documentation and its links
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PY) manage.py makemigrations --check --dry-run
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	$(PY) -m pytest -q tests/docs tests/architecture

lock: ## after a change of requirements.txt or requirements-dev.txt: the hashes of every file of every version
	@tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	$(PYTHON) -m venv "$$tools"; "$$tools/bin/python" -m pip install --quiet --disable-pip-version-check $(UV); \
	for name in requirements requirements-dev; do \
	    "$$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	        --custom-compile-command "make lock" --output-file $$name.lock $$name.txt; \
	done

audit: $(VENV)/.installed ## compare what is installed with known weaknesses: make audit ADVISORIES=folder of OSV files
	@$(PY) -m tests.supply_chain.audit "$(ADVISORIES)"

sbom: ## a bill of materials of what Lakehub runs on, as CycloneDX, in dist/sbom.json
	@tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; mkdir -p dist; \
	$(PYTHON) -m venv "$$tools"; "$$tools/bin/python" -m pip install --quiet --disable-pip-version-check $(CYCLONEDX); \
	"$$tools/bin/cyclonedx-py" requirements --output-reproducible --of JSON -o dist/sbom.json requirements.lock; \
	echo dist/sbom.json

docs: $(VENV)/.installed ## the documentation as a site in .site; links and anchors are checked
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	@echo "Open .site/index.html, or: $(VENV)/bin/mkdocs serve"

architecture: $(VENV)/.installed ## draw the layers of docs/architecture.md from the import contracts
	@$(PY) -m tests.architecture.draw

wheel: $(VENV)/.installed ## the package, in dist
	@rm -rf build dist
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@rm -rf build lakehub.egg-info
	@ls dist/*.whl

wheel-demo: wheel ## the demo from the package alone, in an empty environment that is removed: about five minutes
	@empty=$$(mktemp -d /tmp/lakehub-wheel-demo-XXXXXX); trap 'rm -rf "$$empty"' EXIT; \
	$(PYTHON) -m venv "$$empty/environment"; \
	"$$empty/environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile dist/*.whl; \
	cd "$$empty"; env -u PYTHONPATH environment/bin/lakehub demo --no-serve

airflow: ## Airflow in an environment of its own, for the test of our DAG; about a minute, once
	@PYTHON=$(PYTHON) deploy/airflow/install

bench-peers: setup ## the tools that `python -m bench.checks` compares with, in an environment of their own
	@$(PY) -m bench.peers

format: $(VENV)/.installed ## put the code in form
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

clean: ## remove what the tool chain and the demo made (not .lakehub, an instance's own data)
	rm -rf $(VENV) .demo .cache .site build dist lakehub.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
