# make run   set up and train a model
# make test  set up and run the tests
# Both create .venv in this folder. The other targets are for developers: see CONTRIBUTING.md.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py' -o -name '*.?pp' -o -name '*.cuh') CMakeLists.txt pyproject.toml
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

.PHONY: run test lint format coverage docs wheel-test sanitize fuzz fuzz-api fuzz-files mutants mutants-python mutants-cpp results

run: $(VENV)/.installed
	@echo 'Training a model on SKIP-CIRCLES, ten classes of graphs that message passing cannot distinguish (tfgw train):'
	$(BIN)/tfgw train
	@echo
	@echo 'The command is $(BIN)/tfgw. Try also:'
	@echo '  $(BIN)/tfgw train --help  your own graphs, and all options'
	@echo '  README.md, docs/          layers, estimators, the solver'

test: $(VENV)/.developer
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.developer
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.tools: constraints.txt
	@echo 'Setting up $(VENV): PyTorch and the build tools. The download is a few hundred MB and takes a few minutes.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch scikit-build-core nanobind cmake ninja
	touch $@

# The build tools are pinned too, so the build uses the installed ones instead of downloading others.
$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	@echo 'Building the C++ core and installing tfgw. This takes about a minute.'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable .
	touch $@

$(VENV)/.developer: $(VENV)/.installed
	@echo 'Installing the dependencies of tests and linters.'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[test,lint]'
	touch $@

# Create the pages and figures of docs/results from the records in results/ (needs TFGW_DATA).
FIGURES := fig-4cycles fig-alpha fig-benchmark fig-gin-layers fig-layers fig-lda fig-pca fig-samples fig-skip-circles \
	fig-templates fig-violins
RANKED := tfgw-kernel tfgw gin wl wwl forest
results: $(VENV)/.developer
	$(BIN)/tfgw paper pack
	for t in table3 table5 check-epochs recipe; do $(BIN)/tfgw paper show $$t --markdown > docs/results/$$t.md; done
	$(BIN)/tfgw paper show table1 --done --markdown > docs/results/table1.md
	$(BIN)/tfgw paper show table1 --preset full --done --markdown > docs/results/table1-full.md
	$(BIN)/tfgw paper show table2 --markdown > docs/results/table2-fair.md
	$(BIN)/tfgw paper show table2 --preset full --done --markdown > docs/results/table2-full.md
	$(BIN)/tfgw paper show table2 --done --protocol paper --markdown > docs/results/table2-paper.md
	$(BIN)/tfgw paper show table4 --done --markdown > docs/results/table4.md
	for f in $(FIGURES); do $(BIN)/tfgw paper plot $$f --output docs/results/$$f.png || true; done
	$(BIN)/tfgw paper compare recipe $(RANKED) --output docs/results/ranks.png --markdown > docs/results/comparison.md

# Build the documentation site in build/docs. Runs the examples, checks internal links, and treats warnings as errors.
docs: $(VENV)/.documentation
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/docs
	@echo 'The site is in build/docs/index.html.'

$(VENV)/.documentation: $(VENV)/.installed
	@echo 'Installing the dependencies of the documentation.'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[docs]'
	touch $@

# Line and branch coverage of the Python code, as a table and as HTML in build/coverage.
coverage: $(VENV)/.developer
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --cov --cov-report term:skip-covered --cov-report html

# Test a release: build the source distribution and the wheel, and run the code of the README in a clean environment.
WHEEL_TEST := build/wheel-test
wheel-test:
	rm -rf $(WHEEL_TEST)
	$(PYTHON) -m venv $(WHEEL_TEST)/builder
	$(WHEEL_TEST)/builder/bin/pip install --quiet build
	$(WHEEL_TEST)/builder/bin/python -m build --outdir $(WHEEL_TEST)/dist
	$(PYTHON) -m venv $(WHEEL_TEST)/clean
	$(WHEEL_TEST)/clean/bin/pip install --quiet --constraint constraints.txt $(WHEEL_TEST)/dist/*.whl
	cd $(WHEEL_TEST) && clean/bin/python ../../tests/readme.py ../../README.md && clean/bin/tfgw train --epochs 2
	@echo "The code of the README runs with $$(ls $(WHEEL_TEST)/dist/*.whl)"

# Tests and a short fuzzing of the C++ core, with address and undefined-behaviour sanitizers.
sanitize: build/sanitize/.built
	build/sanitize/test_core
	build/sanitize/fuzz_core 10

# make fuzz FUZZ_SECONDS=3600 FUZZ_SEED=7
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
fuzz: build/sanitize/.built
	build/sanitize/fuzz_core $(FUZZ_SECONDS) $(FUZZ_SEED)

# Random valid and invalid calls of the Python API.
fuzz-api: $(VENV)/.developer
	$(BIN)/python -m tests.fuzz_api $(FUZZ_SECONDS) $(FUZZ_SEED)

# Mutation tests: small changes of the code, each of which a test must detect: make mutants MUTANTS=500
MUTANTS ?= 240
mutants: mutants-python mutants-cpp

mutants-python: $(VENV)/.developer
	$(BIN)/python -m tests.mutants.python --mutants $(MUTANTS)

# The mutants of the C++ core are listed individually; each is built.
mutants-cpp: $(VENV)/.developer
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/python -m tests.mutants.cpp

# Corrupted files of every input format: make fuzz-files CORRUPTIONS=10000
CORRUPTIONS ?= 1000
fuzz-files: $(VENV)/.developer
	$(BIN)/python -m tests.fuzz_files all $(CORRUPTIONS) $(FUZZ_SEED)

build/sanitize/.built: $(VENV)/.tools $(wildcard src/tfgw/ot/cpp/* tests/cpp/*) src/tfgw/ot/cuda/rules.cuh CMakeLists.txt
	$(BIN)/cmake -S . -B build/sanitize -D TFGW_TESTS=ON -D CMAKE_CXX_FLAGS='-g -O1 $(SANITIZE)'
	$(BIN)/cmake --build build/sanitize --parallel
	touch $@
