# make run   sets everything up and runs the main job
# make test  sets everything up and runs the tests
# Both create .venv in this folder. The other targets are for developers: see CONTRIBUTING.md.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py' -o -name '*.?pp' -o -name '*.cuh') CMakeLists.txt pyproject.toml
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

.PHONY: run test lint format sanitize fuzz fuzz-api mutants mutants-python results

run: $(VENV)/.installed
	$(BIN)/tfgw train

test: $(VENV)/.installed
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.tools: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch scikit-build-core nanobind cmake ninja
	touch $@

# The build tools are pinned too, so the build uses the ones just installed instead of fetching its own.
$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[test,lint]'
	touch $@

# The pages and figures of docs/results, from the records in results/ (needs TFGW_DATA). What has no records is left out.
RUN_ON := --dataset MUTAG --dataset PTC_MR --dataset ENZYMES --dataset IMDB-BINARY
FIGURES := fig-4cycles fig-alpha fig-gin-layers fig-layers fig-lda fig-pca fig-samples fig-skip-circles fig-templates fig-violins
results: $(VENV)/.installed
	$(BIN)/tfgw paper pack
	for t in table1 table3 table5 check-epochs; do $(BIN)/tfgw paper show $$t --markdown > docs/results/$$t.md; done
	$(BIN)/tfgw paper show table1 --preset full --done --markdown > docs/results/table1-full.md
	$(BIN)/tfgw paper show table2 $(RUN_ON) --done --markdown > docs/results/table2-fair.md
	$(BIN)/tfgw paper show table2 --preset full --done --markdown > docs/results/table2-full.md
	$(BIN)/tfgw paper show table2 $(RUN_ON) --done --protocol paper --markdown > docs/results/table2-paper.md
	$(BIN)/tfgw paper show table4 --dataset MUTAG --dataset PTC_MR --markdown > docs/results/table4.md
	for f in $(FIGURES); do $(BIN)/tfgw paper plot $$f --output docs/results/$$f.png || true; done

# The C++ core's tests and a short fuzz, under address and undefined-behaviour sanitizers.
sanitize: build/sanitize/.built
	build/sanitize/test_core
	build/sanitize/fuzz_core 10

# make fuzz FUZZ_SECONDS=3600 FUZZ_SEED=7
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
fuzz: build/sanitize/.built
	build/sanitize/fuzz_core $(FUZZ_SECONDS) $(FUZZ_SEED)

# Random calls of the Python API, valid and invalid.
fuzz-api: $(VENV)/.installed
	$(BIN)/python -m tests.fuzz_api $(FUZZ_SECONDS) $(FUZZ_SEED)

# Small changes of the code that decides results, each of which a test must notice: make mutants MUTANTS=500
MUTANTS ?= 240
mutants: mutants-python

mutants-python: $(VENV)/.installed
	$(BIN)/python -m tests.mutants.python --mutants $(MUTANTS)

build/sanitize/.built: $(VENV)/.tools $(wildcard src/tfgw/ot/cpp/* tests/cpp/*) src/tfgw/ot/cuda/rules.cuh CMakeLists.txt
	$(BIN)/cmake -S . -B build/sanitize -D TFGW_TESTS=ON -D CMAKE_CXX_FLAGS='-g -O1 $(SANITIZE)'
	$(BIN)/cmake --build build/sanitize --parallel
	touch $@
