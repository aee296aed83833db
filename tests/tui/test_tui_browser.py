"""Sessions of the browser whose visitor no longer reads what is drawn."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from gpuwatch.tui import browser
from gpuwatch.tui.browser import LiveServer, Session

_DRAWING = """
import os, sys, threading

def leave():
    sys.stdin.buffer.read(5)
    os._exit(0)

if "obeys" in sys.argv:
    threading.Thread(target=leave, daemon=True).start()
out = sys.stdout.buffer
out.write(b"__GANGLION__\\n")
while True:
    out.write(b"D" + (60_000).to_bytes(4, "big") + bytes(60_000))
    out.flush()
"""
_HANDSHAKE = """GET /ws?width=80&height=24 HTTP/1.1\r
Host: 127.0.0.1:{port}\r
Upgrade: websocket\r
Connection: Upgrade\r
Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r
Sec-WebSocket-Version: 13\r
\r
"""


@pytest.fixture(params=["obeys", "ignores"])
async def server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveServer]:
    """Its sessions draw without end; they leave when they are told to, or do not."""
    monkeypatch.setattr(browser, "_END_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        command = [sys.executable, "-c", _DRAWING, request.param]
        made = LiveServer(command, "127.0.0.1", port, 1, "test")
        runner = web.AppRunner(await made._make_app())
        await runner.setup()
        await web.SockSite(runner, listening).start()
        yield made
        await runner.cleanup()


async def _visit(server: LiveServer) -> tuple[socket.socket, Session]:
    """A browser that asks for a session and then reads nothing of it."""
    visitor = socket.socket()
    visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    visitor.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(visitor, ("127.0.0.1", server.port))
    await loop.sock_sendall(visitor, _HANDSHAKE.format(port=server.port).encode())
    await asyncio.sleep(1.0)
    (session,) = server._sessions
    return visitor, session


async def _until_free(server: LiveServer) -> None:
    async with asyncio.timeout(20.0):
        while server._sessions:
            await asyncio.sleep(0.05)


def _is_gone(session: Session) -> bool:
    assert session._process is not None
    try:
        os.killpg(session._process.pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_connection_that_breaks_gives_its_session_back(server: LiveServer) -> None:
    visitor, session = await _visit(server)
    visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    visitor.close()
    await _until_free(server)
    assert _is_gone(session)


async def test_the_server_ends_sessions_that_nobody_reads(
    server: LiveServer, capsys: pytest.CaptureFixture[str]
) -> None:
    visitor, session = await _visit(server)
    with visitor:
        async with asyncio.timeout(20.0):
            await server.on_shutdown(web.Application())
        assert _is_gone(session)
        await _until_free(server)
    assert "did not end" not in capsys.readouterr().err


class _Ending:
    def __init__(self, problem: Exception | None = None) -> None:
        self.problem, self.ended = problem, False

    async def end(self) -> None:
        if self.problem is not None:
            raise self.problem
        await asyncio.sleep(0.01)
        self.ended = True


async def test_what_a_session_raises_is_told_and_the_others_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = LiveServer(["true"], "127.0.0.1", 1, 2, "test")
    broken, whole = _Ending(RuntimeError("no such pipe")), _Ending()
    server._sessions = {broken, whole}  # type: ignore[arg-type]
    await server.on_shutdown(web.Application())
    assert whole.ended
    assert "no such pipe" in capsys.readouterr().err
