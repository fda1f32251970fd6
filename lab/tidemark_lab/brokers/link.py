"""A TCP link that can be cut or slowed: a proxy before a listener of a node, in a thread."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from typing import Final, Self, cast

_CHUNK_BYTES: Final = 65_536
_TICK_SECONDS: Final = 0.1
# A slow link forwards for so long: some fetch rounds.
OPEN_SECONDS: Final = 0.3


class Link:
    """Listens at `address` and forwards each connection to `target`.

    While it is cut, it closes every connection and accepts none: packets get through in neither
    direction. While it is slow, it forwards for a moment, and then nothing for so many seconds. A
    context manager.
    """

    def __init__(self, address: tuple[str, int], target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(address)
        self._peers: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._is_cut, self._stop = threading.Event(), threading.Event()
        self._pause_seconds = self._open_from = 0.0
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def cut(self) -> None:
        self._is_cut.set()

    def restore(self) -> None:
        self._is_cut.clear()

    def slow(self, pause_seconds: float) -> None:
        """0: as fast as before."""
        self._pause_seconds, self._open_from = pause_seconds, time.monotonic() + pause_seconds

    def _waits(self) -> bool:
        """Whether it forwards nothing now."""
        now = time.monotonic()
        if self._pause_seconds and now >= self._open_from + OPEN_SECONDS:
            self._open_from = now + self._pause_seconds
        return now < self._open_from

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._waits():
                self._stop.wait(_TICK_SECONDS)
                continue
            ready = self._selector.select(_TICK_SECONDS)
            if self._is_cut.is_set():
                for end in list(self._peers):
                    self._drop(end)
            for key, _ in ready:
                end = cast("socket.socket", key.fileobj)
                if end is self._listener:
                    self._accept()
                elif end in self._peers:
                    self._forward(end)
        for end in list(self._peers):
            self._drop(end)
        self._selector.close()
        self._listener.close()

    def _accept(self) -> None:
        inner, _ = self._listener.accept()
        try:
            if self._is_cut.is_set():
                raise ConnectionRefusedError
            outer = socket.create_connection(self._target, 1.0)
        except OSError:
            inner.close()
            return
        for end, peer in ((inner, outer), (outer, inner)):
            self._peers[end] = peer
            self._selector.register(end, selectors.EVENT_READ)

    def _forward(self, end: socket.socket) -> None:
        try:
            data = end.recv(_CHUNK_BYTES)
            if data:
                self._peers[end].sendall(data)
                return
        except OSError:
            pass
        self._drop(end)

    def _drop(self, end: socket.socket) -> None:
        for one in (end, self._peers.get(end)):
            if one is not None and self._peers.pop(one, None) is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(one)
                one.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
