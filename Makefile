# Everything a developer or CI runs. Each target works in a fresh clone with a CPython, pip and gcc: `setup` makes
# .venv with the rest. `make help` lists the targets.

PYTHON ?= python3
# The torch that tests and demo use; any CUDA build from 2.6 on, e.g. HOTBED_TORCH="torch==2.9.1".
HOTBED_TORCH ?= torch==2.14.1
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
NATIVE := $(shell find native CMakeLists.txt -name '*.c' -o -name '*.h' -o -name CMakeLists.txt)
ARCH ?= $(shell uname -m)
BUILT := build/dist-$(ARCH)
# Another seed tries other files; the count is what two minutes allow.
FUZZ_SEED ?= 3
FUZZ_COUNT ?= 100000
DEMO := tests/data/h200/detection.record.pickle.xz
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

export HOTBED_PYTHON := $(abspath $(BIN))/python
# Tests start hundreds of processes: none of them should compile hotbed anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: build/sanitize help setup demo test browser-test lint native-test fuzz wheel aarch64 symbols fit-programs exactness planted device-bundle clean

help:  ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 14

setup: $(READY)  ## .venv with torch, hotbed (editable) and the tools

# Torch first: a dependency of ours could otherwise bring another one.
$(READY): pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt --upgrade pip
	$(PIP) install -c constraints.txt "$(HOTBED_TORCH)"
	$(PIP) install -c constraints.txt --group dev
	$(PIP) install -c constraints.txt --no-build-isolation --editable . -C build-dir=build/editable
	# The package in src/ looks for its native files beside itself, not in site-packages.
	$(BIN)/cmake --install build/editable --prefix src --component Unspecified > build/editable/install.log
	touch $@

demo: setup  ## the recommendation for the shipped detection trace
	$(BIN)/hotbed tune $(DEMO)

test: setup  ## all tests that need no GPU
	$(PYTEST) -m "not gpu and not slow and not browser"

browser-test: setup  ## reports in Debian's Chromium, which is installed where it is missing
	command -v chromium > /dev/null || { apt-get update && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; }
	$(PIP) install -c constraints.txt --group browser
	$(BIN)/python -m pytest tests/browser

lint: setup  ## style, types, import rules, size budgets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/python tools/import_rules.py
	$(BIN)/python tools/budgets.py

build/sanitize: setup
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	    -DCMAKE_BUILD_TYPE=Debug -DHOTBED_SANITIZE=ON -DHOTBED_WERROR=ON -DHOTBED_TESTS=ON
	$(BIN)/cmake --build build/sanitize

native-test: build/sanitize  ## the C parts under AddressSanitizer and UBSan
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure

fuzz: build/sanitize  ## random programs and hostile files, longer than in `test` and `native-test`
	build/sanitize/native/snapshot/snapshot_fuzz $(FUZZ_SEED) $(FUZZ_COUNT) tests/data/made/every_kind.pickle
	$(PYTEST) -m slow -k fuzz

wheel: setup  ## a manylinux_2_28 wheel in dist/, checked and tried in an environment of its own
	$(PIP) install -c constraints.txt wheel ziglang
	rm -rf $(BUILT) build/wheel-$(ARCH)
	CC=$(CURDIR)/tools/zig-cc HOTBED_ARCH=$(ARCH) CMAKE_ARGS="$(CMAKE_ARGS)" $(BIN)/python -m build --wheel \
	    --no-isolation -C build-dir=build/wheel-$(ARCH) --outdir $(BUILT) .
	$(BIN)/python -m wheel tags --remove --platform-tag manylinux_2_28_$(ARCH) $(BUILT)/*.whl
	$(BIN)/python tools/check_wheel.py $(BUILT)/*.whl
	test $(ARCH) != $$(uname -m) || BIN=$(BIN) tools/try_wheel $(BUILT)/*.whl
	# The wheel of another architecture may lie there already.
	mkdir -p dist && rm -f dist/*_$(ARCH).whl && mv $(BUILT)/*.whl dist/

aarch64:  ## the same wheel for aarch64, compiled here
	$(MAKE) wheel ARCH=aarch64 CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64"

symbols: setup  ## what the phantom lacks of published torch wheels; downloads gigabytes, installs nothing
	$(BIN)/python tools/symbols.py 2.6.0 2.9.1 2.14.1 newest

fit-programs: setup  ## fit where it takes long, in new interpreters: torch.compile, a C++ extension, many passes
	HOTBED_TEST_FRESH=1 $(PYTEST) -m slow tests/phantom/test_fit_programs.py tests/phantom/test_checkpoint.py tests/cli/test_fit.py

exactness: setup  ## replay against everything measured on the H200: the table of docs/accuracy
	$(BIN)/python benchmarks/exactness.py

planted: setup  ## findings on programs with planted memory problems: the table of docs/accuracy
	$(BIN)/python benchmarks/planted_suite.py --floor 60

device-bundle: wheel  ## .whl/: hotbed and what it needs, for a CPython 3.12 (x86_64) without network; numpy is left to it
	rm -rf .whl
	$(PIP) download -c constraints.txt --no-deps --only-binary=:all: --dest .whl --python-version 3.12 \
	    --implementation cp $(addprefix --platform manylinux,_2_28_x86_64 _2_27_x86_64 _2_17_x86_64 2014_x86_64 1_x86_64) \
	    click jinja2 markdown-it-py MarkupSafe mdurl msgspec nvidia-ml-py pyelftools Pygments rich tomlkit zstandard
	cp dist/*_x86_64.whl .whl/
	test $$(du -sm .whl | cut -f1) -lt 20

clean:  ## what was built, not .venv
	rm -rf build dist .whl
