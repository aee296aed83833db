"""The live view in a browser: a real server, visited as a browser does."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from gpuwatch.cli import main, serve

DEADLINE_SECONDS = 60.0
POLL_SECONDS = 0.05
SOURCE = ["gemm", "-d", "sim:a10", "--no-picker", "--", "128", "128", "128"]
MOST = 2


class Running:
    """A server in a process of its own, that ends with the test."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        own = ["serve", "--port", str(self.port), "--sessions", str(MOST)]
        environment = {**os.environ, "GPUWATCH_CONFIG_DIR": str(folder)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", *own, *SOURCE],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.told = self.process.stdout.readline()

    def sessions(self) -> list[int]:
        return children(self.process.pid)

    def family(self) -> list[int]:
        """Every process that the server started, and those that they did."""
        found, left = [], self.sessions()
        while left:
            one = left.pop()
            found.append(one)
            left += children(one)
        return found

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_SECONDS)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    try:
        yield running
    finally:
        running.process.terminate()
        running.process.wait(DEADLINE_SECONDS)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text().split()]


def runs(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def until_gone(processes: list[int]) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while left := list(filter(runs, processes)):
        assert time.monotonic() < end, f"{left} are still there"
        await asyncio.sleep(POLL_SECONDS)


Tab = aiohttp.ClientWebSocketResponse


@asynccontextmanager
async def visit(client: aiohttp.ClientSession, server: Running) -> AsyncIterator[Tab]:
    """A tab in which the live view is drawn."""
    async with client.ws_connect(f"{server.url}/ws?width=120&height=40") as tab:
        await read_until(tab, b"SM occupancy")
        yield tab


async def read_until(tab: Tab, wanted: bytes) -> None:
    seen = b""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while wanted not in seen:
            message = await tab.receive()
            assert message.type is aiohttp.WSMsgType.BINARY, f"{message} after {seen!r}"
            seen += message.data


async def test_the_page_and_its_sessions(server: Running) -> None:
    assert server.url in server.told
    async with aiohttp.ClientSession() as client:
        async with client.get(server.url) as answer:
            page = await answer.text()
            assert (answer.status, f"ws://localhost:{server.port}/ws" in page) == (200, True)
        async with visit(client, server) as one, visit(client, server):
            assert len(server.sessions()) == MOST
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{server.url}/ws")
            assert refused.value.status == 503
            async with client.get(server.url) as answer:
                assert answer.status == 503
                assert f"at most {MOST} sessions" in await answer.text()
            assert len(server.sessions()) == MOST
            await one.send_json(["stdin", "?"])
            await read_until(one, b"type to search")
            await one.send_json(["stdin", "\x1b"])
            await one.send_json(["resize", {"width": 50, "height": 12}])
            await read_until(one, b"this is 50x12")


async def test_a_session_ends_with_its_tab_and_makes_room(server: Running) -> None:
    async with aiohttp.ClientSession() as client:
        for _ in range(2):
            async with visit(client, server), visit(client, server):
                family = server.family()
                assert len(family) >= 2 * MOST  # each has a worker
            await until_gone(family)
        async with visit(client, server) as tab:
            family = server.family()
            await tab.send_json(["stdin", "q"])
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not tab.closed:
                    await tab.receive()
            await until_gone(family)


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGKILL, -9)],
)
async def test_nothing_outlives_the_server(
    server: Running, number: signal.Signals, status: int
) -> None:
    async with aiohttp.ClientSession() as client, visit(client, server), visit(client, server):
        family = server.family()
        assert len(family) >= 2 * MOST
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(None, server.end, number) == status
        await until_gone(family)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://elsewhere.example"},
        {"Host": "rebound.example", "Origin": "http://rebound.example"},
    ],
    ids=["another site", "a name made to lead here"],
)
async def test_pages_of_others_are_refused(server: Running, headers: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{server.url}/ws", headers=headers)
        assert refused.value.status == 403
    assert not server.sessions()


def test_what_cannot_be_served(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "gemm", "--port", str(port), "--host", "127.0.0.1"]) == 2
    assert "address already in use" in (told := capsys.readouterr().err)
    assert "hint: choose another --port" in told
    assert main(["serve", "nowhere.cu"]) == 2
    assert "there is no source 'nowhere.cu'" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "gpuwatch.tui.browser", raising=False)
    assert main(["serve", "gemm"]) == 2
    assert "pip install 'gpuwatch-live[serve]'" in capsys.readouterr().err


def test_sessions_do_not_import_what_lies_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit(4)")
    command = serve._command(argparse.Namespace(words=["--version"], arguments=[]))
    assert subprocess.run(command, cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
