# make demo    from a table of noisy labels to trusted ones, in demo/
# make test    everything that must hold
# make lint    ruff and mypy
# make bench   speed and memory beside the peers (minutes; installs them)
# make learners   accuracy of all methods with features on real crowds (half an hour; goes on where it was killed)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Real crowd data for the tests that want it; without it they are skipped, and counted as skipped.
MANYHANDS_DATA ?= $(abspath $(wildcard ../shared/data))
export MANYHANDS_DATA

.PHONY: demo test lint bench learners clean
.DEFAULT_GOAL := test

$(VENV)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e '.[dev,learn,plot]'
	touch $@

$(BENCH)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(PIP) -e '.[bench,learn]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/manyhands demo -o demo --force

test: $(VENV)/ready lint
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/run.py
	$(BENCH)/bin/python benchmarks/loading.py
	$(BENCH)/bin/python benchmarks/accuracy.py
	$(BENCH)/bin/python benchmarks/learning.py

learners: $(VENV)/ready
	$(BIN)/python benchmarks/learners.py
	$(BIN)/python benchmarks/starts.py

clean:
	rm -rf $(VENV) $(BENCH) build demo src/*.egg-info src/manyhands/*.so
