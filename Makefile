# From a clone to a result: `make demo`. To know that it works here: `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NEO4J ?= .teller-neo4j# the home of `make neo4j`
DATA ?= .teller-data# where `make data` puts its sets
EXTRAS := dev,learn,testbed,ui# what `make test` adds to the core
WORKSPACE ?= .teller-demo# which `make ui` shows
UI ?=# more words for `teller ui`, as in make ui UI=--headless
COMPOSE := docker compose version >/dev/null 2>&1
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --editable# compiled when imported
export PIP_CONSTRAINT := constraints.txt# by environment, so that it reaches isolated builds too
export PIP_BUILD_CONSTRAINT := constraints.txt# the same for pip 25.3 and later
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check fmt lint types imports smoke bench data neo4j up down ui pictures editor clean help
.DEFAULT_GOAL := help

demo: $(VENV)/.core  ## diagnose the recorded run that comes with the code
	@rm -f .teller-demo/demo-report.html
	@$(BIN)/teller demo --workspace .teller-demo || test $$? -eq 1 # 1: a fault was found
	@test -s .teller-demo/demo-report.html # a crash of Python ends with 1 too, but without a report

test: $(VENV)/.tools  ## run the tests
	$(BIN)/pytest -n 2

check: lint types imports test smoke  ## all that must hold before a commit

fmt: $(VENV)/.tools  ## format the code and sort its imports
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(VENV)/.tools  ## format and style
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(VENV)/.tools  ## mypy, strict
	$(BIN)/mypy --explicit-package-bases # several folders of tests have a conftest

imports: $(VENV)/.tools  ## who may import whom
	$(BIN)/lint-imports

smoke: $(VENV)/.tools  ## build the wheel, install it into an empty environment, use it
	tests/wheel_smoke.sh $(BIN)/python

bench: $(VENV)/.core  ## measure, and write docs/benchmarks.md again (BENCH=--quick, --full)
	$(BIN)/python bench/run.py $(BENCH)

neo4j: $(VENV)/.tools  ## start a Neo4j server of your own (Java 17 and Maven; NEO4J=HOME)
	@$(BIN)/python tools/neo4j/server.py start $(NEO4J) --bolt 7687 --http 7474

up:  ## start a graph server, workers and a watch of TELLER_DATA in Docker (docs/deploy.md)
	@$(COMPOSE) || { echo "Docker with compose is needed; docs/deploy.md does it without"; exit 2; }
	docker compose up --build --detach

down:  ## stop them; what they keep stays
	@$(COMPOSE) || { echo "Docker with compose is needed"; exit 2; }
	@TELLER_DATA=. TELLER_NEO4J_PASSWORD=- docker compose down # it asks for both even here

data: $(VENV)/.core  ## make the simulated sets again, and compare them with their hashes (DATA=FOLDER)
	@for set in train variety validation test small; do $(BIN)/teller simulate --set $$set -o $(DATA) || exit 1; done

ui: $(VENV)/.ui  ## open the pages in a browser: of the demo, or of WORKSPACE
	$(BIN)/teller ui --workspace $(WORKSPACE) $(UI)

pictures: $(VENV)/.tools  ## make the pictures of docs/ui.md again (needs Chromium)
	$(BIN)/python tools/pictures.py docs/pictures

editor:  ## build the editor for Cypher again (needs Node)
	cd tools/editor && npm ci --no-audit --no-fund && npm run build

clean:  ## remove what can be made again, but not the environment
	rm -rf build dist src/*.egg-info .teller-demo .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis
	find graph ingest lab migrations models src tests ui -name __pycache__ -prune -exec rm -rf {} +

help:
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"Python 3.11 or later is needed; name one: make PYTHON=python3.11 demo")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) .
	@touch $@

$(VENV)/.tools: $(VENV)/.core
	$(INSTALL) '.[$(EXTRAS)]'
	@touch $@

$(VENV)/.ui: $(VENV)/.core
	$(INSTALL) '.[ui]'
	@touch $@
