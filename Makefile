# The front door of sluice: short names for what one does with it. `make` lists them. All real
# building is CMake's (CMakePresets.json); each preset has a folder of its own.

.NOTPARALLEL:
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
# The model of `make bench`.
MODEL ?= $(firstword $(wildcard models/*.gguf))

ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
endif

# With CI=true warnings are errors and only failures are printed at length.
ifeq ($(CI),true)
configure = cmake --preset $(1) -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null
compile = cmake --build --preset $(1) -j $(JOBS) $(2) -- --quiet
run_tests = ctest --test-dir $(1) -j $(JOBS) $(2) --output-on-failure --no-label-summary \
  -Q -O $(1)/ctest.log && tail -n 4 $(1)/ctest.log || \
  { grep -vE ' (Passed|Start) |    Start' $(1)/ctest.log; exit 1; }
else
configure = cmake --preset $(1) >/dev/null
compile = cmake --build --preset $(1) -j $(JOBS) $(2)
run_tests = ctest --test-dir $(1) -j $(JOBS) $(2) --output-on-failure --no-label-summary
endif

.PHONY: help deps deps-aarch64 deps-clang build demo test test-fast aarch64 asan tsan clang bench \
  bench-kernels fuzz format tidy clean

help:           ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

deps:           ## install the packages of the build that are missing (Debian 12)
	@scripts/install_packages.sh build

deps-aarch64:   ## install the packages of aarch64
	@scripts/install_packages.sh aarch64

deps-clang:     ## install the packages of clang, fuzz, format and tidy
	@scripts/install_packages.sh clang

build:          ## configure and build everything; the program is build/sluice
	@$(call configure,release)
	@$(call compile,release)

demo: deps      ## build the program alone, stream the small model of the repository
	@$(call configure,release)
	@$(call compile,release,--target sluice)
	build/sluice demo

test: deps build  ## all tests, those about threads under the thread sanitizer, then aarch64
	@$(call run_tests,build)
	@$(call configure,tsan)
	@$(call compile,tsan,--target check_threads)
	@$(MAKE) --no-print-directory aarch64

test-fast: build  ## the tests that take less than a minute together
	@$(call run_tests,build,-L fast)

aarch64: deps deps-aarch64  ## kernels, formats and logits as on 64-bit ARM, emulated
	@$(call configure,aarch64)
	@$(call compile,aarch64,--target emulated_tests)
	@unset SLUICE_CASES; $(call run_tests,build-aarch64)

asan:           ## all tests under the address and undefined-behaviour sanitizers
	@$(call configure,asan)
	@$(call compile,asan)
	@$(call run_tests,build-asan)

tsan:           ## all tests under the thread sanitizer
	@$(call configure,tsan)
	@$(call compile,tsan)
	@$(call run_tests,build-tsan)

clang: deps-clang  ## build with clang 14, warnings as errors
	@$(call configure,clang)
	@$(call compile,clang)

bench:          ## prefill and decode rates of the demo model, or of MODEL=file
	@$(call configure,release)
	@$(call compile,release,--target sluice)
	build/sluice bench $(MODEL)

bench-kernels:  ## every kernel beside its ceiling
	@$(call configure,release)
	@$(call compile,release,--target bench_kernels)
	build/bench_kernels

fuzz: deps-clang  ## fuzz the parsers for ten minutes, or FUZZ_SECONDS=n
	@$(call configure,fuzz)
	@$(call compile,fuzz)
	scripts/fuzz.sh build-fuzz $(FUZZ_SECONDS)

format: deps-clang  ## clang-format every source file in place
	find src tests bench tools -name '*.h' -o -name '*.cc' | xargs clang-format-14 -i

tidy: deps-clang build  ## clang-tidy over src/
	run-clang-tidy-14 -quiet -p build -j $(JOBS) "$(CURDIR)/src/.*\.cc"

clean:          ## delete the build folders
	rm -rf build build-dev build-clang build-asan build-tsan build-fuzz build-aarch64
