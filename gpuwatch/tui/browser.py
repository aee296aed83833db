"""The live view in a browser, through textual-serve: a process for each tab."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from gpuwatch.errors import UserError

_END_SECONDS = 5.0
"""How long a session has to end by itself; then it is killed."""
_HEARTBEAT_SECONDS = 15.0
_CHUNK_BYTES = 1 << 16
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FULL = """<!DOCTYPE html>
<html><head><title>gpuwatch: full</title><meta http-equiv="refresh" content="5"></head>
<body style="background: #10151c; color: #d5dce5; font: 16px monospace; padding: 4em">
<p>gpuwatch shows {sessions} of at most {most} sessions.</p>
<p>This page opens the next one that comes free: somebody closes a tab or quits with q.
<code>--sessions</code> allows more.</p>
</body></html>
"""


class Session(AppService):
    """The process of one tab. It leads a group of its own: ctrl+c in the server's terminal
    reaches the server alone, which ends its sessions in order. `abort` drops the connection to
    the browser at once."""

    def __init__(self, command: str, *, abort: Callable[[], None], **given: Any) -> None:
        super().__init__(command, **given)
        self._abort = abort
        self._leaving: asyncio.Task[None] | None = None

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *shlex.split(self.command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width=width, height=height),
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Until the process ends; then the tab says so."""
        await super().run()
        await self.remote_close()

    async def end(self) -> None:
        """Returns once the process has gone; may be asked for several times."""
        process = self._process
        if process is None:
            return
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._leave(process))
        done, _ = await asyncio.wait({self._leaving}, timeout=_END_SECONDS)
        if not done:
            self._abort()
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(self._leaving)

    async def _leave(self, process: Process) -> None:
        try:
            with suppress(ConnectionError):  # the browser has gone already
                await self.stop()
        finally:
            # asyncio does not see the end of a process whose output nobody reads.
            assert process.stdout is not None
            while await process.stdout.read(_CHUNK_BYTES):
                pass
            await process.wait()


class LiveServer(Server):
    """Shows what `command` draws to at most `most` visitors at once."""

    def __init__(self, command: Sequence[str], host: str, port: int, most: int, title: str) -> None:
        super().__init__(shlex.join(command), host=host, port=port, title=title)
        self._most = most
        self._sessions: set[Session] = set()

    def serve(self, debug: bool = False) -> None:
        """Until SIGINT, SIGTERM or SIGHUP, and until all sessions have ended. Raises UserError
        when the address cannot be had."""
        self.debug = debug
        try:
            web.run_app(
                self._make_app(),
                host=self.host,
                port=self.port,
                shutdown_timeout=_END_SECONDS,
                print=self._tell,
            )
        except OSError as problem:
            raise UserError(
                f"cannot serve on {self.host}, port {self.port}: {problem.strerror}",
                hint="choose another --port from 1024 on, or an address of this machine as --host",
            ) from problem

    def _tell(self, *_running: object) -> None:
        """Once the address is open."""
        print(f"{self.title}: {self.public_url}", flush=True)
        print(f"at most {self._most} sessions, no password; ctrl+c ends them all", flush=True)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._from_own_pages)
        return app

    async def on_startup(self, app: web.Application) -> None:  # noqa: ARG002
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGHUP, self.request_exit)

    async def on_shutdown(self, app: web.Application) -> None:  # noqa: ARG002
        ends = (session.end() for session in self._sessions)
        for problem in await asyncio.gather(*ends, return_exceptions=True):
            if problem is not None:
                print(f"a session did not end in order: {problem!r}", file=sys.stderr)

    @web.middleware
    async def _from_own_pages(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what another site's page sends through the visitor's browser."""
        origin = request.headers.get("Origin")
        foreign = origin is not None and urlsplit(origin).netloc != request.host
        if foreign or (self.host in _LOOPBACK and request.url.host not in _LOOPBACK):
            raise web.HTTPForbidden(text=f"gpuwatch answers only to {self.public_url}\n")
        return await handler(request)

    @property
    def _full(self) -> bool:
        return len(self._sessions) >= self._most

    async def handle_index(self, request: web.Request) -> web.StreamResponse:
        if self._full:
            text = _FULL.format(sessions=len(self._sessions), most=self._most)
            return web.Response(status=503, content_type="text/html", text=text)
        # The page's links lead back the way the visitor came: a tunnel, another name, but not a
        # proxy that speaks TLS, for the scheme is that of the request to this server.
        self.public_url = f"{request.scheme}://{request.host}"
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if self._full:
            raise web.HTTPServiceUnavailable(text=f"all {self._most} sessions are taken\n")
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_SECONDS)

        async def close() -> None:
            await socket.close()

        def abort() -> None:
            if request.transport is not None:
                request.transport.abort()

        session = Session(
            self.command,
            abort=abort,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._sessions.add(session)
        try:
            await socket.prepare(request)
            size = [to_int(request.query.get(side, ""), 0) for side in ("width", "height")]
            await session.start(size[0] or 80, size[1] or 24)
            await self._process_messages(socket, session)
        finally:
            try:
                await session.end()
            finally:
                self._sessions.discard(session)
        return socket
