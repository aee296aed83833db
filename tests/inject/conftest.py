"""The driver that stands in for a GPU, a program, and the injected library, built once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from inject_support import HERE, Fake, Start, Watched, watch

from gpuwatch.inject.library import build_library, find_cupti, require_compiler
from gpuwatch.toolchain import find

_C = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
_DRIVER = ("fake_driver.c", "fake_launches.c", "fake_cupti.c")
_VERSIONS = "libcupti.so.13 { global: cupti*; };\n"
"""The real library gives its functions versions, which those linked with it ask for."""


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory, _own_cache: None) -> Fake:
    toolchain = find()
    cupti, compiler = find_cupti(toolchain), require_compiler()
    folder = tmp_path_factory.mktemp("fake")
    (folder / "versions").write_text(_VERSIONS)
    driver = folder / "libcuda.so.1"
    (folder / "libcupti.so.13").symlink_to(driver.name)
    include = (f"-I{cupti.cuda_include}", f"-I{cupti.include}")
    flags = (*_C, "-fPIC", "-shared", "-pthread", f"-Wl,-soname,{driver.name}")
    script = f"-Wl,--version-script={folder / 'versions'}"
    sources = [HERE / name for name in _DRIVER]
    _run(compiler, *flags, script, *include, "-o", driver, *sources, "-ldl")
    program = folder / "program"
    _run(compiler, *_C, "-pthread", *include, "-o", program, HERE / "program.c", driver)
    kernels = HERE / "kernels.cu"
    _run(toolchain.nvcc, "-arch=sm_90", "-ptx", "-lineinfo", "-o", folder / "kernels.ptx", kernels)
    code = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    fatbin = folder / "kernels.fatbin"
    _run(toolchain.nvcc, code, "-fatbin", "--no-compress", "-o", fatbin, kernels)
    _run(toolchain.nvcc, "-arch=sm_90", "-cubin", "-o", folder / "kernels.cubin", kernels)
    return Fake(folder, build_library(toolchain))


def _run(*words: str | Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


_LOADING = (("loader", "data"), ("image", "ptx"))


@pytest.fixture
def start(fake: Fake, tmp_path: Path) -> Iterator[Start]:
    """Starts a program in a session that ends with the test."""
    started: list[Watched] = []

    def begin(mode: str, count: int = 3, *environment: str, **options: object) -> Watched:
        loading = [str(options.pop(name, default)) for name, default in _LOADING]
        output = tmp_path / f"output-{len(started)}"
        command = fake.command(mode, count, *loading)
        started.append(watch(fake, output, command, environment, **options))
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def run(start: Start, fake: Fake) -> Start:
    """Runs one to its end. What it prints and its status are those of the program alone."""

    def go(mode: str, count: int = 3, *environment: str, **options: object) -> Watched:
        loading = [str(options.get(name, default)) for name, default in _LOADING]
        watched = start(mode, count, *environment, **options)
        watched.end()
        assert watched.ended == fake.alone(fake.command(mode, count, *loading), *environment)
        return watched

    return go
