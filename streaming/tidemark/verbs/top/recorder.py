"""`--record`: the events of each pass appended to a file, for `tidemark replay`."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tidemark.core.errors import ConfigError

# A recording ends here; collection goes on.
MAX_BYTES: Final = 8 * 1024**3


class Recorder:
    """Appends one batch per line, gzipped where the name ends in `.gz`. A full disk ends it only.

    Raises ConfigError where the file cannot be written.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        # Why it ended; null while it goes on.
        self.ended: str | None = None
        self._left = max_bytes
        try:
            continued = path.exists() and path.stat().st_size > 0
            self._file: Any = (gzip.open if path.suffix == ".gz" else open)(path, "ab")
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}. Choose another.") from None
        if continued:
            # The last line of a process that was killed may have no end; empty lines are skipped.
            self._file.write(b"\n")

    def write(self, payloads: Iterable[bytes]) -> None:
        """Writes the batches of one pass; raises nothing."""
        if self.ended is not None:
            return
        try:
            for payload in payloads:
                self._left -= len(payload) + 1
                if self._left < 0:
                    self.ended = f"recording ended: {self.path} has reached its limit"
                    break
                self._file.write(payload + b"\n")
            self._file.flush()
        except OSError as error:
            self.ended = f"recording ended: cannot write {self.path}: {error.strerror}"

    def close(self) -> None:
        """Ends the file; raises nothing."""
        try:
            self._file.close()
        except OSError as error:
            self.ended = f"recording ended: cannot write {self.path}: {error.strerror}"
