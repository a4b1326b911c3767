# Quotewright. `make chat`, `make ask Q="..."`, `make test`, `make setup`: each does all the set-up that it needs.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup chat ask batch test lint clean

help:
	@echo 'make chat          set up and serve the chat page on http://127.0.0.1:7860'
	@echo 'make ask Q="..."   set up and answer one question here'
	@echo 'make batch         set up, answer twenty questions on the built-in corpus, score them, compare with plain decoding'
	@echo 'make setup         only set up: packages, models, index of the built-in corpus'
	@echo 'make test          set up and run all tests'
	@echo 'make lint          linters, types and the import contract'

setup: .venv/installed
	$(BIN)/python app.py setup

chat: .venv/installed
	$(BIN)/python app.py chat

ask: .venv/installed
	@test -n "$$Q" || { echo 'Ask something: make ask Q="What is a lambda?"' >&2; exit 2; }
	@$(BIN)/python app.py ask -- "$$Q"

batch: .venv/installed
	$(BIN)/python app.py batch --dataset python-docs --compare plain --out runs/python-docs

test: .venv/installed-dev
	$(BIN)/python -m tests.browser
	$(BIN)/python -m tests.strace
	$(BIN)/python app.py setup
	$(BIN)/python -m pytest

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy app retrieval decoding indexes benchmarks examples tests
	$(BIN)/mypy app.py
	$(BIN)/lint-imports

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Quotewright needs Python 3.11 or newer; say which one: make PYTHON=python3.12 ...' >&2; exit 2; }
	$(PYTHON) -m venv .venv

.venv/installed: requirements.txt | .venv/bin/python
	$(BIN)/python -m pip install -r requirements.txt
	@touch $@

.venv/installed-dev: tests/requirements.txt requirements-ray.txt .venv/installed
	$(BIN)/python -m pip install -r tests/requirements.txt
	@touch $@

clean:
	rm -rf .venv
