# `make demo` opens the live view on the article's GEMM; `make test` runs all that CI runs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo install install-test cuda test lint types layers pytest corpus fuzz test-gpu bench bench-gpu screenshots clean

demo: install
	$(BIN)/gpuwatch kernels/gemm.cu

install: $(VENV)/.installed
install-test: $(VENV)/.installed-test

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@if [ -e /proc/driver/nvidia/version ] || command -v nvidia-smi >/dev/null 2>&1; then \
		$(BIN)/python -m pip install --quiet --editable '.[cuda]' || \
		echo "PyCUDA could not be built (the reason stands above); going on with the simulated GPU." \
			"'gpuwatch doctor' says what is missing."; \
	fi
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

cuda: | $(BIN)/python
	$(BIN)/python -m pip install --editable '.[cuda]'

test: lint types layers pytest

lint: install-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install-test
	$(BIN)/mypy

layers: install-test
	$(BIN)/lint-imports

pytest: install-test
	$(BIN)/python -m pytest -n 2 -m "not gpu"

corpus: install-test
	GPUWATCH_CORPUS=all $(BIN)/python -m pytest -n 2 -m "not gpu" tests/corpus

fuzz: install-test
	$(BIN)/python -m pytest -n 2 -m "not gpu" --hypothesis-profile=fuzz \
		$$(grep -rlE "^@given|stateful" tests --include='test_*.py')

test-gpu: install-test
	$(BIN)/python -m pytest -m gpu

bench-gpu: install-test
	$(BIN)/python tests/benchmarks/gpu.py tests/benchmarks/h200.md

bench: install-test
	for figures in ptx_parse weaving first_frame sim_speed sim_memory tui; do \
		$(BIN)/python tests/benchmarks/$$figures.py || exit 1; done

screenshots: install-test
	$(BIN)/python screenshots/make.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
