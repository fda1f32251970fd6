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
    direction. While it is slow, it forwards for a moment, and then nothing for so many seconds.
    Answers that are held wait until they are released, one by one. A context manager.
    """

    def __init__(self, address: tuple[str, int], target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server(address)
        self._peers: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._is_cut, self._stop = threading.Event(), threading.Event()
        self._pause_seconds = self._open_from = 0.0
        # Answers are held on connections whose client names itself with this.
        self._held: bytes | None = None
        self._names: dict[socket.socket, bytes] = {}
        self._answers: dict[socket.socket, bytearray] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def cut(self) -> None:
        self._is_cut.set()

    def restore(self) -> None:
        self._is_cut.clear()

    def slow(self, pause_seconds: float) -> None:
        """0: as fast as before."""
        self._pause_seconds, self._open_from = pause_seconds, time.monotonic() + pause_seconds

    def hold(self, name: bytes) -> None:
        """Holds back each answer to clients that name themselves so in their first request."""
        self._held = name

    def release(self, name: bytes) -> bool:
        """Forwards one whole answer to the client of this name; False: none has come yet."""
        with self._lock:
            for inner, first in self._names.items():
                waiting = self._answers.get(inner)
                if name in first and waiting and (size := _frame_bytes(waiting)):
                    inner.sendall(waiting[:size])
                    del waiting[:size]
                    return True
        return False

    def let_go(self) -> None:
        """Forwards all that was held, and holds nothing from now on."""
        with self._lock:
            self._held = None
            for inner, waiting in self._answers.items():
                with contextlib.suppress(OSError):
                    inner.sendall(waiting)
            self._answers.clear()

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
        self._names[inner] = b""
        for end, peer in ((inner, outer), (outer, inner)):
            self._peers[end] = peer
            self._selector.register(end, selectors.EVENT_READ)

    def _forward(self, end: socket.socket) -> None:
        try:
            data = end.recv(_CHUNK_BYTES)
            if data:
                self._pass(end, self._peers[end], data)
                return
        except OSError:
            pass
        self._drop(end)

    def _pass(self, end: socket.socket, peer: socket.socket, data: bytes) -> None:
        with self._lock:
            if end in self._names:
                self._names[end] = self._names[end] or data
            elif self._held is not None and self._held in self._names.get(peer, b""):
                self._answers.setdefault(peer, bytearray()).extend(data)
                return
            peer.sendall(data)

    def _drop(self, end: socket.socket) -> None:
        for one in (end, self._peers.get(end)):
            if one is not None and self._peers.pop(one, None) is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(one)
                with self._lock:
                    self._names.pop(one, None)
                    self._answers.pop(one, None)
                one.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _frame_bytes(waiting: bytearray) -> int | None:
    """The size of the first answer, with its length field; None while it is not whole."""
    size = 4 + int.from_bytes(waiting[:4])
    return size if 4 <= size <= len(waiting) else None
