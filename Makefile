# The front door. CMake and Ninja do the work in build/; tools/setup gets what a target needs.

PREFIX ?= /usr/local
CMAKE   = cmake -G Ninja -S .

release:
	@tools/setup build
	@$(CMAKE) -B build/release >/dev/null
	@cmake --build build/release

# The adapter to ExecuTorch, for the package in EXECUTORCH=.../site-packages/executorch, or the one that is
# found. `make` builds it, too, where the package is.
EXECUTORCH ?=
executorch: release
	@$(CMAKE) -B build/release -DFERRY_EXECUTORCH=$(EXECUTORCH) | grep ExecuTorch
	@cmake --build build/release --target ferry_executorch

# Export a real model, run it in ONNX Runtime, compare with the numbers of the eager model.
demo: release
	@tools/setup demo
	@build/venv/bin/python tools/demo.py build/release/ferry build/demo

# Everything: unit tests under sanitizers, fuzzers, command line, real runtimes.
test:
	@tools/test

# Measurements, each a ratio to something measured in the same run.
bench: release
	@tools/setup test
	@build/venv/bin/python bench/run.py

# A longer run of every fuzzer: make fuzz SECONDS=600
SECONDS ?= 60
fuzz:
	@tools/setup fuzz
	@CC=clang-14 $(CMAKE) -B build/fuzz -DFERRY_FUZZ=ON -DFERRY_SANITIZE=ON >/dev/null
	@cmake --build build/fuzz
	@tests/fuzz/run.sh $(SECONDS) build/fuzz

install: release
	@cmake --install build/release --prefix $(PREFIX)

format:
	@tools/setup format
	@git ls-files -z '*.c' '*.h' | xargs -0 clang-format-14 -i

clean:
	rm -rf build/release build/test build/check build/fuzz build/fixtures build/demo build/conformance

.PHONY: release executorch demo test bench fuzz install format clean
