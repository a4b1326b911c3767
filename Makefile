# Quotewright. `make chat`, `make ask Q="..."`, `make test`, `make setup`: each does all the set-up that it needs.

PYTHON ?= python3
BIN := .venv/bin
# Tests run side by side, a worker on each of up to four cores, so libraries do not start threads of their own.
WORKERS ?= -n logical --maxprocesses 4
test: export OMP_NUM_THREADS = 1

.PHONY: help setup chat ask batch test lint vllm-env test-vllm clean

help:
	@echo 'make chat          set up and serve the chat page on http://127.0.0.1:7860'
	@echo 'make ask Q="..."   set up and answer one question here'
	@echo 'make batch         set up, answer twenty questions on the built-in corpus, score them, compare with plain decoding'
	@echo 'make setup         only set up: packages, models, index of the built-in corpus'
	@echo 'make test          set up and run all tests'
	@echo 'make lint          linters, types and the import contract'
	@echo 'make test-vllm     its test with the real vLLM, which takes minutes'
	@echo 'make vllm-env      an environment of its own for vLLM on a CPU, which `python app.py serve-vllm` starts'

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
	$(BIN)/python -m pytest $(WORKERS)

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

vllm-env: .venv-vllm/installed

test-vllm: vllm-env .venv/installed-dev
	$(BIN)/python app.py setup
	QUOTEWRIGHT_TEST_VLLM=.venv-vllm/bin/python $(BIN)/python -m pytest tests/app/commands/test_vllm_real.py

# What is uninstalled comes with vLLM in builds for another torch.
.venv-vllm/installed: requirements-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install -r requirements-vllm.txt
	.venv-vllm/bin/python -m pip uninstall -y torchvision torchaudio torchcodec
	@touch $@

clean:
	rm -rf .venv .venv-vllm
