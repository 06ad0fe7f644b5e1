"""A TCP proxy on loopback between nodes and server, which cuts, silences, slows or half closes their connections."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

PASS, CUT, SILENT, SLOW, HALF_CLOSED = "pass", "cut", "silent", "slow", "half closed"
CHUNK = 4096  # bytes
SLOW_SECONDS = 0.2  # for each chunk: about 20 kB/s in each direction
LOOK_SECONDS = 0.05

Address = tuple[str, int]


class Proxy:
    """Forwards connections from one address to another, in a thread of its own. `mode` may change at any time."""

    def __init__(self, inner: Address, outer: Address) -> None:
        self._outer, self._inner = outer, inner
        self._mode, self._loop, self._open = PASS, asyncio.new_event_loop(), set[asyncio.StreamWriter]()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, *outer))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def set_mode(self, mode: str) -> None:
        self._call(self._change(mode))

    def close(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _change(self, mode: str) -> None:
        """Change the mode. When a fault ends, the old connections are reset, as by a router that restarts."""
        self._mode = mode
        for writer in list(self._open):
            with suppress(OSError, RuntimeError):
                if mode == HALF_CLOSED:
                    writer.transport.write_eof()
                elif mode in (CUT, PASS):
                    writer.transport.abort()

    async def _end(self) -> None:
        """Reset all connections and end their tasks."""
        self._server.close()
        await self._change(CUT)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # so that what was aborted is closed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == CUT:
            writer.transport.abort()
            return
        try:
            there, onward = await asyncio.open_connection(*self._inner)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, onward}
        try:
            await asyncio.gather(self._forward(reader, onward), self._forward(there, writer))
        finally:
            self._open -= {writer, onward}
            writer.close()
            onward.close()

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError, RuntimeError):
            while content := await source.read(CHUNK):
                await self._wait_for(lambda: self._mode != SILENT)
                if self._mode == SLOW:
                    await asyncio.sleep(SLOW_SECONDS)
                target.write(content)
                await target.drain()
            if target.can_write_eof():
                target.write_eof()
            return
        target.transport.abort()

    async def _wait_for(self, ready: Callable[[], bool]) -> None:
        while not ready():
            await asyncio.sleep(LOOK_SECONDS)
