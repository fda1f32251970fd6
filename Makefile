# Every target works from a fresh clone. CI runs `make test`.
.DEFAULT_GOAL := help
.NOTPARALLEL:
PYTHON ?= python3
# Images of Python set it. Then each process of the demo and the benchmarks would compile all imports.
unexport PYTHONDONTWRITEBYTECODE
bin := .venv/bin
ROUNDS ?= 1
# Of `make drills`: each user and verb with its rights, a killed worker of Spark standalone, and each
# process killed at random moments. `make soak` has them too, with more kills.
rights_and_kills := tests/cluster/test_rights.py tests/cluster/test_rights_of_verbs.py \
  tests/stream/test_standalone.py tests/cluster/test_collector_kills.py \
  tests/stream/test_kills.py::test_kills_at_random_moments_lose_and_double_nothing

.PHONY: help setup system test soak demo drills kafka chaos bench mutation lock lint types contracts format unit tests dashboards panels schema docs pictures site clean

help: ## Lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## Makes .venv from the lock; does nothing when it is up to date
	@PYTHON="$(PYTHON)" scripts/setup.sh

system: ## Installs prometheus, prometheus-alertmanager and chromium for the tests, as root on Debian
	@scripts/system.sh

test: ## Runs everything that CI checks, prints the time of each section
	@scripts/sections.sh setup+system tests+lint+types+contracts

demo: setup ## Runs the whole product on a real cluster of this machine: faults, and their alerts
	@$(bin)/tidemark demo

drills: setup ## Runs every drill, writes drills-results.json; 5 minutes of each chaos; rights and kills, ROUNDS times
	@$(bin)/tidemark drill all --jobs 2 --json $(DRILL_ARGS) > drills-results.json
	@$(bin)/tidemark drill chaos --seconds 300 --replication-factor 3 $(CHAOS_ARGS)
	@$(bin)/tidemark drill chaos --hostile --seconds 300 $(CHAOS_ARGS)
	@for round in $$(seq $(ROUNDS)); do \
	  echo "== rights and kills, round $$round of $(ROUNDS)"; \
	  KILLS=$${KILLS:-5} $(bin)/python -m pytest -m soak $(rights_and_kills) $(PYTEST_ARGS) || exit 1; \
	done

kafka: setup ## Tests a version of Kafka that is new in the table, VERSION=4.5.0: an hour; writes its sums and tables
	@$(bin)/python -m tests.versions.sums $(VERSION)
	@REWRITE=1 $(bin)/python -m pytest -m soak tests/versions -k $(VERSION)
	@$(bin)/tidemark drill all --kafka $(VERSION) --jobs 2 --json $(DRILL_ARGS) > drills-results.json
	@$(bin)/python -m tests.docs.versions
	@$(bin)/python -m tests.docs.drills drills-results.json

chaos: setup ## Injects benign and harmful faults into real brokers for 15 minutes, judges every alert
	@$(bin)/tidemark drill chaos $(CHAOS_ARGS)
	@$(bin)/tidemark drill chaos --hostile $(CHAOS_ARGS)

bench: setup ## Runs the benchmarks, writes bench-results.json and docs/performance.*
	@$(bin)/python -m tests.bench

mutation: setup ## Mutates the evolution of states and the loss detectors, counts the mutants that no test kills
	@$(bin)/python -m tests.mutation

lock: ## Resolves requirements/*.lock again
	@PYTHON="$(PYTHON)" scripts/lock.sh

lint: setup ## Checks rules and format with ruff
	@$(bin)/ruff check --quiet
	@$(bin)/ruff format --check --quiet

types: setup ## Checks types with mypy --strict
	@$(bin)/mypy

contracts: setup ## Checks which package imports which
	@$(bin)/lint-imports --no-cache

format: setup ## Formats the code
	@$(bin)/ruff check --fix-only --quiet
	@$(bin)/ruff format --quiet

unit: setup ## Runs the tests that start neither Spark, brokers nor a browser
	@$(bin)/python -m pytest -q -m "not spark and not cluster and not browser and not soak"

tests: setup ## Runs all tests, those that compute beside those that wait
	@$(bin)/python -m tests $(PYTEST_ARGS)

soak: setup ## Runs the searches and walks that take minutes, 54 kills, an hour of the pipeline and an hour of chaos
	@KILLS=9 $(bin)/python -m pytest -m soak $(PYTEST_ARGS)
	@MODEL_TRACES=100000 $(bin)/python -m pytest tests/model_and_detectors $(PYTEST_ARGS)
	@$(bin)/python -m tests.histories --seed 2000000 --count 4000
	@$(bin)/python -m tests.histories.blame --count 2000
	@$(bin)/python -m tests.fuzz --seconds 600
	@$(bin)/python -m tests.soak --seconds 3600 $(SOAK_ARGS)
	@$(bin)/tidemark drill chaos --seconds 900 $(CHAOS_ARGS)
	@$(bin)/tidemark drill chaos --hostile --seconds 1800 $(CHAOS_ARGS)

dashboards: setup ## Regenerates dashboards, rule files and docs/metrics.md
	@$(bin)/python -m dashboards

panels: setup system ## Draws all panels by Grafana's published components in three states, into panels/; needs Node.js, 500 MB
	@cd scripts/panels && npm ci --silent
	@mkdir -p panels
	@PYTHON="$$PWD/$(bin)/python" node scripts/panels/draw.mjs panels

schema: setup ## Regenerates the JSON Schemas of the events and of the configuration
	@$(bin)/python -m tests.schema

docs: setup ## Regenerates the model's parts of docs/replication, and the tables of versions, drills and performance
	@$(bin)/python -m tests.docs.replication
	@$(bin)/python -m tests.docs.versions
	@$(bin)/python -m tests.docs.drills
	@$(bin)/python -m tests.docs.performance

pictures: setup ## Takes the pictures of the README from the status page
	@$(bin)/python -m tests.docs.pictures

site: setup ## Builds the documentation as a web site into build/site, and checks its links
	@scripts/site.sh

clean: ## Removes .venv and the files of tools and tests
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist mutants
	rm -rf fuzz-findings panels scripts/panels/node_modules
	rm -f bench-results.json demo-report.json drills-results.json soak-results.json soak-results.svg
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
