# `make demo` opens the live view on the article's GEMM; `make test` runs all that CI runs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYCUDA := build/pycuda
HEADERS := from importlib.metadata import files; \
	print(next(f.locate().parents[1] for f in files("nvidia-cuda-runtime") if f.name == "cuda.h"))

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
		$(MAKE) cuda || \
		echo "PyCUDA could not be built (the reason stands above); going on with the simulated GPU." \
			"'gpuwatch doctor' says what is missing."; \
	fi
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

# Headers and an empty libcuda, in whose place the driver's own comes at run time, are all that
# PyCUDA needs to be built. The headers are those of the wheels, or CUDA_HOME's.
cuda: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[headers]'
	rm -rf $(PYCUDA) && mkdir -p $(PYCUDA)/stub
	$(BIN)/python -m pip download --quiet --no-deps --no-binary pycuda --dest $(PYCUDA) pycuda
	tar -xzf $(PYCUDA)/pycuda-*.tar.gz -C $(PYCUDA) --strip-components=1
	$(CC) -shared -x c -Wl,-soname,libcuda.so.1 -o $(PYCUDA)/stub/libcuda.so /dev/null
	headers="$${CUDA_HOME:-$$($(BIN)/python -c '$(HEADERS)')}" && printf '%s\n' \
		"CUDA_INC_DIR = ['$$headers/include']" 'CUDA_ENABLE_CURAND = False' 'CUDADRV_LIBNAME = []' \
		"LDFLAGS = ['-L$(abspath $(PYCUDA))/stub', '-Wl,--no-as-needed', '-lcuda']" \
		>$(PYCUDA)/siteconf.py
	$(BIN)/python -m pip install --force-reinstall --no-deps ./$(PYCUDA)
	rm -rf $(PYCUDA)
	$(BIN)/python -m pip install --quiet --editable '.[cuda,run]'

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
	$(BIN)/python tests/benchmarks/run_cost.py tests/benchmarks/run.md

bench: install-test
	for figures in ptx_parse weaving first_frame sim_speed sim_memory trace_decode tui; do \
		$(BIN)/python tests/benchmarks/$$figures.py || exit 1; done

screenshots: install-test
	$(BIN)/python screenshots/make.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
