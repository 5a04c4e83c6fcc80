# The front door. `make help` says what there is.
SHELL := /bin/bash
BUILD ?= build/release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60

.PHONY: all help setup build test test-frameworks test-horovod test-schemathesis check lint-all quickstart bench asan tsan fuzz install clean

all: build ## build the release binary

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: ## install missing build packages (apt)
	@tools/setup

build: setup
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) --target slipway
	@cmake --build $(BUILD) --parallel $(JOBS) --target programs

test: setup ## build everything and run all tests
	@tools/setup chromium fonts-dejavu-core || echo "continuing without Chromium: the tests of the web UI in a browser are skipped"
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS)
	@tools/run-tests $(BUILD) --parallel $(JOBS) --label-exclude slow

# The environments (3 GB) are made once, in about three minutes, and kept in ~/.cache/slipway/frameworks.
test-frameworks: build ## TensorFlow, PyTorch, JAX, MPI and MLflow through Slipway, workers killed on the way (about eight minutes)
	@tools/frameworks
	@cd tests/frameworks && SLIPWAY=$(CURDIR)/$(BUILD)/bin/slipway python3 -B -m unittest -v

test-schemathesis: build ## the REST API against docs/api/openapi.yaml by Schemathesis (a minute)
	@tools/frameworks schemathesis
	@cd tests/frameworks && SLIPWAY=$(CURDIR)/$(BUILD)/bin/slipway python3 -B -m unittest -v schemathesis_slow

# Compiling Horovod takes about 17 minutes, once; its wheel is kept as well.
test-horovod: build ## the same for Horovod (a minute, once it is compiled)
	@tools/frameworks horovod
	@cd tests/frameworks && SLIPWAY=$(CURDIR)/$(BUILD)/bin/slipway python3 -B -m unittest -v horovod_slow

check: setup ## format, lint and arrows
	@tools/check

lint-all: setup ## clang-tidy over every file (slow)
	@tools/lint --all

# Data is welcome but not needed: without it the trainer draws digits.
quickstart: build ## a service, three nodes, a first job and a training run, on this machine
	@tools/setup dataset-fashion-mnist || echo "continuing without Fashion-MNIST: with what SLIPWAY_DATA names, else with drawn digits"
	@tools/quickstart $(BUILD)/bin

bench: setup ## measure against the limits and the peers
	@cmake --preset release >/dev/null
	@cmake --build $(BUILD) --parallel $(JOBS) --target slipway bench_programs
	@SLIPWAY=$(CURDIR)/$(BUILD)/bin/slipway bench/run $(ARGS)

asan: setup ## all tests under the address and undefined-behaviour sanitizers
	@cmake --preset asan >/dev/null
	@cmake --build build/asan --parallel $(JOBS)
	@tools/run-tests build/asan --parallel $(JOBS) --label-exclude 'slow|e2e'

tsan: setup ## all tests under the thread sanitizer
	@cmake --preset tsan >/dev/null
	@cmake --build build/tsan --parallel $(JOBS)
	@# The sanitizer's own thread is in every process, and with a second thread none enters a user namespace.
	@tools/run-tests build/tsan --parallel $(JOBS) --label-exclude 'slow|e2e|isolation'

fuzz: setup ## every fuzz target for FUZZ_SECONDS (60) with libFuzzer
	@tools/setup clang libclang-rt-14-dev
	@cmake --preset fuzz -DFUZZ_SECONDS=$(FUZZ_SECONDS) >/dev/null
	@cmake --build build/fuzz --parallel $(JOBS) --target fuzz

install: build ## install under PREFIX (/usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX) --strip

clean: ## remove what was built
	@rm -rf build
