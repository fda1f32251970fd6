"""kafka-python's plaintext transport with fewer system calls and turns of its event loop.

The library waits until a socket can be written before each request, and reads 4 KiB at a time. A
pass sends requests and reads answers of 50 KiB and more.
"""

from __future__ import annotations

import time
from typing import Any, Final

from kafka.net.transport import KafkaTCPTransport

RECEIVE_BYTES: Final = 64 * 1024
_WOULD_BLOCK: Final = (BlockingIOError, InterruptedError)


class DirectTransport(KafkaTCPTransport):  # type: ignore[misc]
    """Anything but success, even the end of the stream, is left to the library."""

    def write(self, data: bytes) -> None:
        """Sends at once what the socket takes, and queues the rest."""
        left = memoryview(data)
        if self._write and not self._closed and not self._writing:
            left = left[self._send(left) :]
        if left or not data:
            super().write(left)

    def _send(self, data: memoryview) -> int:
        try:
            sent: int = self._sock.send(data)
        except OSError:
            return 0
        self.last_write = time.monotonic()
        return sent

    def _sock_recv(self) -> tuple[bytes, Any]:
        try:
            data = self._sock.recv(RECEIVE_BYTES)
        except _WOULD_BLOCK:
            return b"", None
        except OSError:
            data = b""
        return (data, None) if data else super()._sock_recv()
