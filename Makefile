PYTHON ?= python3
# More at once than cores: tests wait for servers about as long as they compute.
PYTEST_ARGS ?= -n 3
APP ?= heatsync
PORT ?= 8300
MINUTES ?= 20

BIN := .venv/bin
INSTALLED := .venv/installed

# Pyright comes with its package; without this it would ask the network for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test lint format bench bench-full soak peers servers programs clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## install batchmill and its tools into .venv

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "batchmill needs Python 3.11 or later, and $(PYTHON) is not."; \
		echo "Say which one to use: make setup PYTHON=python3.12"; \
		exit 1; \
	}
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup programs ## run an application on sample data in the terminal: make demo APP=calls
	$(BIN)/python -m apps.$(APP).demo

serve: setup programs ## serve an application: make serve APP=heatsync PORT=8300
	BATCHMILL_PUBLIC_URL=$${BATCHMILL_PUBLIC_URL:-http://127.0.0.1:$(PORT)} \
	$(BIN)/batchmill --app apps.$(APP).app:app serve --port $(PORT) --grace 10

test: setup servers lint ## check everything
	$(BIN)/pytest $(PYTEST_ARGS)

lint: setup ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/deptry src apps
	$(BIN)/lint-imports --no-logo

format: setup ## put the code into its common form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup peers ## measure batchmill and its peers in one run, some minutes
	$(BIN)/python -m benchmarks.run

soak: setup ## abuse a server beside a normal tenant: MINUTES=20 ONLY=json,headers
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) $(if $(ONLY),--only $(ONLY))

bench-full: setup peers ## the same with more jobs and repeats, two hours or so
	$(BIN)/python -m benchmarks.run --full

peers:
	@bin/install-servers benchmarks
	$(BIN)/python benchmarks/systems/install.py

servers:
	@bin/install-servers tests

programs:
	@case $(APP) in calls|resumes|sites) bin/install-servers apps ;; esac

clean: ## remove all that can be made again
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
