"""Commits in a thread of their own: a coordinator that hangs delays no post."""

from __future__ import annotations

import threading
from typing import Final, Protocol

import structlog

from tidemark_exporters.notify.positions import Mark

RETRY_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 4.0

log = structlog.get_logger()


class OffsetStore(Protocol):
    """Where a receiver's progress survives the process. `save` returns False when it could not."""

    def load(self) -> dict[int, Mark]: ...

    def save(self, marks: dict[int, Mark]) -> bool: ...

    def close(self) -> None: ...


class BackgroundStore:
    """An OffsetStore whose `save` never waits: the newest marks replace those that were not committed yet.

    After `load` only its thread touches the store beneath, which is used by one thread at a time.
    """

    def __init__(self, store: OffsetStore, name: str) -> None:
        self._store = store
        self._name = name
        self._wake = threading.Condition()
        self._next: dict[int, Mark] | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"commit-{name}", daemon=True)

    def load(self) -> dict[int, Mark]:
        return self._store.load()

    def save(self, marks: dict[int, Mark]) -> bool:
        with self._wake:
            self._next = marks
            self._wake.notify()
            if not self._thread.is_alive() and not self._closing:
                self._thread.start()
        return True

    def close(self) -> None:
        """Tries what is left once more, for CLOSE_SECONDS at most."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is None:
            self._store.close()
            return
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        failing = False
        while True:
            with self._wake:
                if failing and not self._closing:
                    self._wake.wait_for(lambda: self._closing, timeout=RETRY_SECONDS)
                self._wake.wait_for(lambda: self._closing or self._next is not None)
                marks, self._next, closing = self._next, None, self._closing
            if marks is not None:
                saved = self._store.save(marks)
                if not saved and not failing:
                    log.warning(
                        "cannot commit what was delivered; a restart now would post it again",
                        receiver=self._name,
                    )
                failing = not saved
                with self._wake:
                    if not saved and self._next is None:
                        self._next = marks
                    closing = closing or (self._closing and self._next is None)
            if closing:
                self._store.close()
                return
