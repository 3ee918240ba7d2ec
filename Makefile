# Everything is installed into .venv, from the versions in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check lint bench clean

demo: .venv/.core
	$(BIN)/rewardfree demo

test: .venv/.dev
	$(BIN)/python -m pytest -n 2

check: lint test

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.core
	$(BIN)/python -m benchmarks.update
	$(BIN)/python -m benchmarks.exact
	$(BIN)/python -m benchmarks.labels

clean:
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rewardfree needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

.venv/.core: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/.dev: .venv/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .[dev]
	touch $@
