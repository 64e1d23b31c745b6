# gpupool: everything a person types. `make help` lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Made again only when what is installed would change.
$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "gpupool needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "could not make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(READY) ## make .venv with the locked packages (the other targets do it by themselves)

demo: $(READY) ## bring the lab up on described hardware and tell the story; leaves it running
	@$(BIN)/python demo/story.py

demo-down: $(READY) ## stop what `make demo` left running
	@$(BIN)/kubectl-gpupool lab down

test: $(READY) ## run the tests
	$(BIN)/pytest -n 2 --dist loadgroup

soak: $(READY) ## kill the node plugins 200 times at random points (minutes; reported in docs/soak.md)
	$(BIN)/pytest tests/lab/test_kill.py --rounds 200 --timeout 3000

kube: $(READY) ## build a real Kubernetes of three versions into ~/.cache/gpupool (needs Go; minutes, once)
	@$(BIN)/python -m dradriver.lab.realcluster

test-cluster: $(READY) ## run the tests that need real clusters (needs Go and root)
	@$(BIN)/python -m dradriver.lab.realcluster --pods
	$(BIN)/pytest tests/cluster -m cluster --timeout 600

oracle: $(READY) ## compare allocator and CEL with the real ones, live (needs Go; MINORS="32 37" CASES=2000)
	$(BIN)/python tests/oracle/oracles.py $(MINORS)
	$(BIN)/python tests/oracle/running.py $(MINORS) --cases $(or $(CASES),2000)
	$(BIN)/python tests/oracle/expressions.py $(MINORS) --cases $(or $(CASES),2000)

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fmt: $(READY) ## ruff: put the format right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(READY) ## mypy, strict
	$(BIN)/mypy

layers: $(READY) ## the order of rooms (import-linter)
	$(BIN)/lint-imports

check: lint type layers ## lint, types and the order of rooms

protocol: $(READY) ## generate the gRPC stubs from the .proto files
	$(BIN)/python dradriver/protocol/generate.py

lock: ## lock the packages anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --extra lab pyproject.toml requirements/dev.in -o requirements/dev.txt

clean: ## remove what the other targets made in the tree
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

.PHONY: help setup demo demo-down test soak kube test-cluster oracle lint fmt type layers check protocol lock clean
