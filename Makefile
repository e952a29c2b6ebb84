# Everything a person or CI types; run `make` for the list. The environment is set up when first needed and again
# when pyproject.toml or constraints.txt change; until then a target starts at once.

SHELL := /bin/bash
VENV ?= .venv
PYTHON ?=
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -qq --no-input --disable-pip-version-check -c constraints.txt
MANIFESTS := pyproject.toml constraints.txt

.PHONY: help demo test test-slow check format clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 18

demo: $(VENV)/.installed-run ## set up, then train a small model on the CPU with real MaxText
	$(BIN)/python -m primus_hydra experiment=demo

test: $(VENV)/.installed-dev ## set up, then run the tests
	$(BIN)/python -m pytest

test-slow: $(VENV)/.installed-dev ## the tests that train for long, build a wheel or run the documentation
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.installed-dev ## style, types, layering
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev ## rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the environment and the caches, not the runs
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@python=$$(scripts/find_python.sh "$(PYTHON)") && "$$python" -m venv $(VENV)

$(VENV)/.installed-run: $(MANIFESTS) | $(BIN)/python
	@echo "Setting up $(VENV), once: MaxText and JAX, up to 4 minutes and 1.6 GB."
	@$(INSTALL) -e '.[cpu]'
	@touch $@

$(VENV)/.installed-dev: $(MANIFESTS) | $(BIN)/python
	@echo "Setting up $(VENV), once: MaxText, JAX and the test tools, up to 5 minutes and 1.7 GB."
	@$(INSTALL) -e '.[cpu,dev]'
	@touch $(VENV)/.installed-run $@
