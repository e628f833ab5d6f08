# Everything runs in .venv, which `make setup` makes from Python 3.11 and a C++ compiler alone.
PYTHON ?= python3
# ON tunes the core for this processor; a wheel never is.
NATIVE ?= OFF
# Where `make train` keeps its run.
RUN := $(or $(RUN),runs/$(shell date +%Y%m%d-%H%M%S))
# Where `make wheel` puts the wheel.
DIST ?= dist

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CMAKE := $(BIN)/cmake
SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
CONFIGURE := $(CMAKE) -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING
CPP := $(wildcard cpp/*/*.cpp cpp/*/*.hpp)
TOOLS := .venv/tools.stamp
BUILT := .venv/built-$(NATIVE).stamp
# The oldest Gymnasium that we support; the newest is in constraints.txt.
OLDEST_GYMNASIUM := 1.2.2
OLDEST := build/gymnasium-$(OLDEST_GYMNASIUM)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup test lint format stub train bench figures docs sanitize sanitize-asan
.PHONY: native-build sanitize-tsan sanitize-python tidy wheel clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(BUILT) ## build and install into .venv, editable (NATIVE=ON: tuned for this processor)

test: setup lint tidy $(OLDEST) ## set up, then lint, types and all tests
	$(BIN)/pytest -n 2 --dist loadfile
	PYTHONPATH=$(OLDEST) $(BIN)/python -c \
		'import gymnasium as g; assert g.__version__ == "$(OLDEST_GYMNASIUM)", g.__version__'
	PYTHONPATH=$(OLDEST) $(BIN)/pytest -n 2 --dist loadfile tests/envs -m 'not slow'

lint: setup ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/mypy

format: setup ## put the code in shape
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

stub: setup ## write the stub of the compiled module anew
	$(BIN)/python -m nanobind.stubgen -q -m cagepool._core -o src/cagepool/_core.pyi

train: setup ## train a defender against all reds, score it and make its page: a few minutes
	$(BIN)/cagepool train --preset minutes --out $(RUN)
	$(BIN)/cagepool evaluate $(RUN)
	$(BIN)/cagepool report $(RUN)

bench: native-build ## measure the speed of the engine, also against a build for this processor
	$(BIN)/cagepool bench engine --other-build build/native-python

native-build: setup
	$(PIP) install . --no-deps --no-build-isolation --upgrade --target build/native-python \
		-C build-dir=build/native-module -C cmake.define.CAGEPOOL_NATIVE=ON

# On a quiet machine. With CYBORG_PYTHON, a Python that has CybORG and cagepool, and MINICAGE, the folder of
# mini_CAGE, these take part too.
figures: native-build ## measure anew what docs/benchmarks.md is made of, then write it
	$(BIN)/cagepool bench --out benchmarks --other-build build/native-python \
		$(if $(CYBORG_PYTHON),--cyborg-python $(CYBORG_PYTHON)) $(if $(MINICAGE),--minicage $(MINICAGE))
	$(if $(CYBORG_PYTHON),$(CYBORG_PYTHON) -m cagepool bench cyborg --out benchmarks/cyborg.json)
	$(if $(CYBORG_PYTHON),$(CYBORG_PYTHON) -m cagepool bench true-state --out benchmarks/true_state.json)
	$(BIN)/python benchmarks/profiles.py
	$(MAKE) docs

docs: setup ## write docs/benchmarks.md from benchmarks/*.json
	$(BIN)/python benchmarks/page.py

sanitize: sanitize-asan sanitize-tsan sanitize-python ## test under ASan, UBSan and TSan

sanitize-asan: SANITIZE := address,undefined
sanitize-tsan: SANITIZE := thread
sanitize-asan sanitize-tsan: sanitize-%: $(TOOLS)
	$(CONFIGURE) -B build/$* -DCAGEPOOL_TESTS=ON -DCAGEPOOL_SANITIZE=$(SANITIZE)
	$(CMAKE) --build build/$*
	ASAN_OPTIONS=halt_on_error=1:detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
	$(BIN)/ctest --test-dir build/$* --output-on-failure --no-tests=error

# -S keeps the editable install out of sight; the sanitizer must be loaded before Python.
sanitize-python: setup
	$(PIP) install . --no-deps --no-build-isolation --upgrade --target build/asan-python \
		-C build-dir=build/asan-module -C cmake.define.CAGEPOOL_SANITIZE=address,undefined
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=halt_on_error=1:detect_leaks=0 PYTHONPATH=build/asan-python:$(SITE) \
	$(BIN)/python -S -m pytest tests/sim

tidy: setup ## look for mistakes in the core with clang-tidy
	$(CONFIGURE) -B build/tidy
	$(BIN)/clang-tidy --quiet -p build/tidy $(wildcard cpp/core/*.cpp cpp/policy/*.cpp cpp/workers/*.cpp) 2> build/tidy/noise.txt

wheel: $(TOOLS) ## build a wheel for any machine of this kind into dist/
	$(PIP) wheel . --no-deps --no-build-isolation --wheel-dir $(DIST) \
		-C build-dir=build/wheel -C cmake.define.CAGEPOOL_NATIVE=OFF

clean: ## remove everything that was built
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv

$(TOOLS): constraints.txt pyproject.toml | .venv/bin/python
	$(PIP) install -c constraints.txt pip
	$(PIP) install -c constraints.txt scikit-build-core nanobind cmake ninja
	touch $@

$(BUILT): $(TOOLS) CMakeLists.txt $(CPP)
	$(PIP) install -c constraints.txt --no-build-isolation -C cmake.define.CAGEPOOL_NATIVE=$(NATIVE) -e '.[dev]'
	rm -f .venv/built-*.stamp
	touch $@

$(OLDEST): | $(TOOLS)
	$(PIP) install --no-deps --target $@ gymnasium==$(OLDEST_GYMNASIUM)
