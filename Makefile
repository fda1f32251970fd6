# Every target works from a fresh clone. `make test` is what CI runs.
.DEFAULT_GOAL := help
.NOTPARALLEL:
PYTHON ?= python3
bin := .venv/bin

.PHONY: help setup system test soak demo bench mutation lock lint types contracts format unit tests dashboards schema docs clean

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Makes .venv from the lock; does nothing when it is already as the lock says
	@PYTHON="$(PYTHON)" scripts/setup.sh

system: ## As root on Debian: installs prometheus, prometheus-alertmanager and chromium for the tests that use them
	@scripts/system.sh

test: ## Everything that CI checks, with the time of each section
	@scripts/sections.sh setup system lint types contracts tests

demo: setup ## The whole product on a real cluster of this machine: faults, and the alerts that come
	@$(bin)/tidemark demo

bench: setup ## Measures; writes bench-results.json
	@$(bin)/python -m tests.bench

mutation: setup ## Changes the reducer and the detectors of loss one thing at a time, and asks whether a test fails
	@$(bin)/python -m tests.mutation

lock: ## Resolves requirements/*.lock anew
	@PYTHON="$(PYTHON)" scripts/lock.sh

lint: setup ## ruff: rules and format
	@$(bin)/ruff check --quiet
	@$(bin)/ruff format --check --quiet

types: setup ## mypy --strict
	@$(bin)/mypy

contracts: setup ## What may import what
	@$(bin)/lint-imports --no-cache

format: setup ## Rewrites the code in the house's format
	@$(bin)/ruff check --fix-only --quiet
	@$(bin)/ruff format --quiet

unit: setup ## The tests that start neither Spark, brokers nor a browser
	@$(bin)/python -m pytest -q -m "not spark and not cluster and not browser and not soak"

tests: setup ## All tests; one run of the scenes serves every test that needs a live cluster
	@$(bin)/python -m pytest $(PYTEST_ARGS)

soak: setup ## The searches and walks that take minutes
	@$(bin)/python -m pytest -m soak $(PYTEST_ARGS)
	@TIE_TRACES=100000 $(bin)/python -m pytest tests/tie $(PYTEST_ARGS)

dashboards: setup ## Regenerates dashboards, rule files and PrometheusRules
	@$(bin)/python -m dashboards

schema: setup ## Regenerates the JSON Schema of the events
	@$(bin)/python -m tests.schema

docs: setup ## Regenerates what docs/replication.md shows of the model
	@$(bin)/python -m tests.docs.replication

clean: ## Removes .venv and what tools and tests left here
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist mutants
	rm -f bench-results.json demo-report.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
