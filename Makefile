# make demo        a simulated crowd: labels, worker reports, a comparison of all methods and report.html, in demo/
# make test-fast   a part of the tests of every package, at most a minute: while you work
# make test        lint and all tests but the marked ones, at most ten minutes on two cores: before a change lands
# make test-all    make test, the marked tests and the mutants, each within a time limit: what CI runs
# make test-contracts  what is written for annotation tools, checked by their own validators, in an environment of its own
# make test-browser  the report in a browser, in an environment of its own; installs Chromium where it may
# make docs        the site, in build/docs/html, and as build/docs/manyhands-site.zip, in an environment of its own
# make test-docs   what the site says, and how it looks to a browser: names, links, code, accessibility; builds it first
# make test-spark  Spark: the JVM (classic and Connect) and pysail, in environments of their own; installs Java where it may
# make test-wheels  builds the wheels and runs the demo from them, in empty environments of every Python found
# make test-slow   the tests of more than about three seconds
# make mutants     inserts faults into the code, one at a time; the named tests must detect each
# make test-processors  the numerical tests with the instruction sets of other processors (eight minutes)
# make lint        ruff and mypy
# make bench       speed and memory compared with other packages (minutes; installs them)
# make bench-huge  a billion labels out of core under 4 GB of memory (a quarter of an hour; 4.3 GB of disk, removed again)
# make pages       the pages and figures of docs/results, from templates and stored rows; measures nothing
# make learners    accuracy of all methods with features on real crowds (half an hour; an interrupted run resumes)
# make clean       removes the environments and what was built

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
CONTRACTS := .venv-contracts
BROWSER := .venv-browser
DOCS := .venv-docs
SPARK := .venv-spark
SAIL := .venv-sail
WHEELS := .venv-wheels
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Real crowd data for the tests that need it; without it they are skipped, and counted as skipped.
MANYHANDS_DATA ?= $(abspath $(wildcard ../shared/data))
export MANYHANDS_DATA

# Markers are explained in pyproject.toml; each has a target below.
MARKED := slow or browser or spark or contracts or documents or wheels
PYTEST = $(BIN)/python -m pytest -q -n auto --dist worksteal --durations=20
# A target that hangs ends after this many minutes; without `timeout` (macOS) there is no limit.
within = $(if $(shell command -v timeout),timeout --kill-after=10s $(1)m)

.PHONY: demo docs test test-fast test-all test-slow test-contracts test-browser test-docs test-spark test-wheels test-processors mutants lint bench bench-huge pages learners clean
.DEFAULT_GOAL := test

# The package alone, without torch and test tools: all that the demo needs.
$(VENV)/base: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e .
	touch $@

$(VENV)/ready: $(VENV)/base
	$(BIN)/python $(PIP) -e '.[dev,learn,plot]'
	touch $@

$(BENCH)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python $(PIP) -e '.[bench,learn]'
	touch $@

demo: $(VENV)/base
	$(BIN)/manyhands demo -o demo --force

test-fast: $(VENV)/ready
	$(call within,5) $(PYTEST) -m "fast and not ($(MARKED))" tests

test: $(VENV)/ready lint
	$(call within,30) $(PYTEST) -m "not ($(MARKED))"

test-all: test test-slow test-contracts test-browser test-docs test-spark test-wheels mutants

test-slow: $(VENV)/ready
	$(call within,25) $(PYTEST) -m slow

$(CONTRACTS)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(CONTRACTS)/bin/python || $(PYTHON) -m venv $(CONTRACTS)
	$(CONTRACTS)/bin/python $(PIP) -e . pytest hypothesis label-studio-sdk
	$(CONTRACTS)/bin/python -m pip install --quiet --disable-pip-version-check argilla 'labelbox[data]'  # they need older versions
	touch $@

test-contracts: $(CONTRACTS)/ready
	$(call within,10) $(CONTRACTS)/bin/python -m pytest -q -p no:doctest -o addopts="-ra --strict-markers --import-mode=importlib" \
		-W ignore -m contracts tests/contracts

# What builds and inspects wheels; the wheels themselves are installed elsewhere, by uv, from its cache.
$(WHEELS)/ready: pyproject.toml constraints.txt setup.py
	test -x $(WHEELS)/bin/python || $(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python $(PIP) pytest build uv 'setuptools>=77.0.3' twine abi3audit 'cyclonedx-python-lib[json-validation]>=11'
	touch $@

test-wheels: $(WHEELS)/ready
	$(call within,15) $(WHEELS)/bin/python -m pytest -q -p no:doctest -o addopts="-ra --strict-markers --import-mode=importlib" \
		-W ignore -m wheels --durations=10 --confcutdir=tests/wheels tests/wheels

$(BROWSER)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(BROWSER)/bin/python || $(PYTHON) -m venv $(BROWSER)
	$(BROWSER)/bin/python $(PIP) -e . pytest hypothesis playwright axe-playwright-python html5lib
	touch $@

# Where no browser can be installed, one line says so; in CI that is a failure.
test-browser: $(BROWSER)/ready
	@command -v chromium > /dev/null || { apt-get update && apt-get install -y --no-install-recommends chromium; } \
		> /dev/null 2>&1 || true
	@if ! command -v chromium > /dev/null; then \
		echo "browser: 0 passed, $(if $(CI),1,0) failed, $(if $(CI),0,1) skipped (chromium cannot be installed here)"; \
		exit $(if $(CI),1,0); \
	fi; \
	$(call within,10) $(BROWSER)/bin/python -m pytest -q -p no:doctest -o addopts="-ra --strict-markers --import-mode=importlib" \
		-W ignore -m browser tests/browser

# The site. cleanlab and crowd-kit are in the gallery; torch and all other methods are documented.
$(DOCS)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(PIP) -e '.[docs,learn,notebook]' pytest hypothesis nbclient playwright axe-playwright-python
	touch $@

# Sphinx reads again what changed. Every warning is an error, a reference that leads nowhere too.
docs: $(DOCS)/ready
	$(DOCS)/bin/python docs/_ext/assemble.py build/docs/source
	$(call within,20) $(DOCS)/bin/sphinx-build -q -W --keep-going -j 2 -c docs -d build/docs/cache build/docs/source build/docs/html
	rm -f build/docs/manyhands-site.zip
	cd build/docs && $(abspath $(DOCS))/bin/python -m zipfile -c manyhands-site.zip html

test-docs: docs
	$(call within,10) $(DOCS)/bin/python -m pytest -q -p no:doctest -o addopts="-ra --strict-markers --import-mode=importlib" \
		-W ignore -m documents tests/docs

# The JVM's engine: pyspark with Spark itself, and what its Connect server needs.
$(SPARK)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python $(PIP) -e '.[spark]' 'pyspark[connect]==4.2.0' pytest hypothesis
	touch $@

# An engine without Java: pysail, and Spark's client without Spark.
$(SAIL)/ready: pyproject.toml constraints.txt setup.py $(wildcard src/manyhands/_*.[ch])
	test -x $(SAIL)/bin/python || $(PYTHON) -m venv $(SAIL)
	$(SAIL)/bin/python $(PIP) -e . pysail==0.7.2 pyspark-client==4.2.0 pandas pyarrow pytest hypothesis
	touch $@

on_spark = MANYHANDS_SPARK=$(1) $(call within,$(2)) $(3)/bin/python -m pytest -q -p no:doctest \
	-o addopts="-ra --strict-markers --import-mode=importlib" -W ignore -m spark tests/spark

# One engine at a time: each uses all cores. Where no Java can be installed, one line says so; in CI that is a failure.
test-spark: $(SPARK)/ready $(SAIL)/ready
	$(call on_spark,sail,8,$(SAIL))
	@command -v java > /dev/null || { apt-get update && apt-get install -y --no-install-recommends \
		openjdk-17-jre-headless || apt-get install -y --no-install-recommends default-jre-headless; } > /dev/null 2>&1 || true
	@if ! command -v java > /dev/null; then \
		echo "spark on the JVM: 0 passed, $(if $(CI),1,0) failed, $(if $(CI),0,1) skipped (Java cannot be installed here)"; \
		exit $(if $(CI),1,0); \
	fi; \
	$(call on_spark,classic,15,$(SPARK)) && $(call on_spark,connect,12,$(SPARK))

mutants: $(VENV)/ready
	$(call within,25) $(BIN)/python tests/mutants.py -j 2

test-processors: $(VENV)/ready
	$(call within,60) $(BIN)/python tests/processors.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(BENCH)/ready
	$(BENCH)/bin/python benchmarks/run.py
	$(BENCH)/bin/python benchmarks/loading.py
	$(BENCH)/bin/python benchmarks/accuracy.py
	$(BENCH)/bin/python benchmarks/learning.py

bench-huge: $(VENV)/ready
	$(BIN)/python benchmarks/huge.py --page

pages: $(VENV)/ready
	$(BIN)/python benchmarks/pages.py

learners: $(VENV)/ready
	$(BIN)/python benchmarks/learners.py
	$(BIN)/python benchmarks/starts.py

clean:
	rm -rf $(VENV) $(BENCH) $(CONTRACTS) $(BROWSER) $(DOCS) $(SPARK) $(SAIL) $(WHEELS) build demo src/*.egg-info src/manyhands/*.so
