"""A deadline for a whole exchange as an HTTP client.

The time-out of requests holds for each read: a receiver that drips its headers holds a post for as
long as it likes. Here the connection is shut down when the time is over, whatever it was doing.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

# Between attempts to shut down a connection that is still being made.
AGAIN_SECONDS: Final = 0.05


class Deadline:
    """`expired`: the time was over before the exchange was."""

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self._seconds = seconds
        # The one that the exchange uses now.
        self.connection: Any = None
        self._done = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """In the thread that makes the exchange, with a session of `BoundedAdapter`s."""
        guard = threading.Thread(target=self._guard, name="http-deadline", daemon=True)
        guard.start()
        token = _CURRENT.set(self)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            self._done.set()

    def _guard(self) -> None:
        if self._done.wait(self._seconds):
            return
        self.expired = True
        while not self._done.wait(AGAIN_SECONDS):
            made = getattr(self.connection, "sock", None)
            if made is not None:
                # It also wakes a read that another thread is in; close would not.
                with suppress(OSError, ValueError):
                    socket.socket.shutdown(made, socket.SHUT_RDWR)


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def _watch(connection: Any) -> None:
    deadline = _CURRENT.get()
    if deadline is not None:
        deadline.connection = connection


class _Plain(HTTPConnection):
    def connect(self) -> None:
        _watch(self)
        super().connect()

    def request(self, *arguments: Any, **options: Any) -> None:
        _watch(self)
        super().request(*arguments, **options)


class _Tls(_Plain, HTTPSConnection):
    """By the order of the bases, `_Plain` calls the methods of HTTPSConnection."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _Tls


class BoundedAdapter(HTTPAdapter):
    """Its connections end with the Deadline that is running."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*arguments, **options)
        manager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
        return manager
