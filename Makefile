# Everything a person or CI runs. Needs Python 3.11 or newer, git and make; the rest goes into .venv, made once.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
BIN := .venv/bin
SHARED := -n auto --maxprocesses 4 --dist worksteal
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test check format bench bench-peers faults agents lab docs docs-check plant clean

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.serve  ## .venv with Pointsman and its server
setup-dev: .venv/.dev  ## the same with the development tools

.venv/.serve: pyproject.toml tools/setup.sh
	@sh tools/setup.sh "$(PYTHON)" serve

.venv/.dev: pyproject.toml tools/setup.sh .venv/.serve
	@sh tools/setup.sh "$(PYTHON)" dev

demo: setup  ## set up, then the main job end to end on SQLite, told step by step
	@$(BIN)/pointsman demo

test: setup-dev  ## set up, check, then all tests, a share on each processor; red when either is
	@$(MAKE) --no-print-directory check; checked=$$?; $(BIN)/python -m pytest $(SHARED) && exit $$checked

check: setup-dev  ## format, lint, types, layers
	@$(BIN)/ruff format --check --quiet . || { echo 'run: make format'; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

format: setup-dev  ## put the code into its one format
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: setup-dev  ## figures beside floors measured in the same run (QUICK=1 for a short one, DB=postgresql://… for that server)
	@$(BIN)/python -m bench $(if $(QUICK),--quick) $(if $(DB),--db "$(DB)")

.venv/.peers: tools/peers.sh .venv/.dev
	@echo 'Installing the peers (once)…' >&2
	@sh tools/peers.sh

bench-peers: .venv/.peers  ## pgqueuer, procrastinate, oban, DBOS and huey beside Pointsman in one run (QUICK=1 for a short one)
	@$(BIN)/python -m bench.peers --python .venv/peers/bin/python --write docs/benchmarks.md $(if $(QUICK),--quick)

faults: setup-dev  ## the long fault suite: kill -9, crash points, races
	@$(BIN)/python -m pytest -m long

.venv/.agents: tools/agents.sh .venv/.dev
	@echo 'Installing the coding agents (once)…' >&2
	@sh tools/agents.sh

agents: .venv/.agents  ## real coding agents do the whole job over MCP, with a scripted model; nothing leaves this machine
	@$(BIN)/python -m pytest -m agents tests/agents

lab: setup  ## kill workers in the middle of their effects, and count what a remote got (QUICK=1 for a short one)
	@$(BIN)/python examples/interrupted_refund/lab.py $(if $(QUICK),--quick)

docs: setup-dev  ## redraw what is drawn from tables: errors, command line, the machine's diagram
	@$(BIN)/python -m tools.docs

docs-check: setup-dev  ## fail when a drawn page is stale
	@$(BIN)/python -m tools.docs --check

plant: setup-dev  ## plant known bugs one by one and show that the tests catch each
	@$(BIN)/python -m tools.plant

clean:  ## remove .venv and what tools leave behind
	@rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache
