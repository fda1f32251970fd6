"""`tidemark export --shadow FILE`: posts written to a file, a line each, in place of being sent.

`tidemark replay --weeks FILE` sums it up.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final

import msgspec

from tidemark.core.errors import ConfigError
from tidemark.web.webhook_client import NotDeliveredError

# Years of a cluster with some alerts a day. Posts wait once the file is full, as on a full disk.
MAX_BYTES: Final = 1024**3


class ShadowFile:
    """Posts of all receivers. Called by many threads."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """Appends. Raises ConfigError where the file cannot be written."""
        self._path, self._max_bytes, self._lock = path, max_bytes, threading.Lock()
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}. Choose another.") from None

    def write(self, receiver: str, body: bytes) -> None:
        """Raises NotDeliveredError where the post is not kept: it is tried again."""
        document = {"at": time.time(), "receiver": receiver, "post": msgspec.Raw(body)}
        line = msgspec.json.encode(document) + b"\n"
        with self._lock:
            if self._file.tell() + len(line) > self._max_bytes:
                raise NotDeliveredError(f"{self._path} has reached its limit: move it away")
            try:
                self._file.write(line)
                self._file.flush()
            except OSError as error:
                raise NotDeliveredError(f"cannot write {self._path}: {error.strerror}") from None


class ShadowClient:
    """In place of a receiver's client."""

    def __init__(self, name: str, file: ShadowFile) -> None:
        self.name, self._file = name, file

    def post(self, body: bytes, _message_id: str | None) -> None:
        self._file.write(self.name, body)
