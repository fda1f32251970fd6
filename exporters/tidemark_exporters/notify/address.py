"""One address of a receiver, and how posting to it goes: counters, pauses, what the log says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from tidemark.core.records import Alert
from tidemark.web.webhook_client import Client, NotDeliveredError

FIRST_WAIT_SECONDS: Final = 0.5
LONGEST_WAIT_SECONDS: Final = 5.0
# How many refused alerts the log names.
NAMED: Final = 5

log = structlog.get_logger()


@dataclass(eq=False)
class Address:
    """Changed by its receiver's `Sender` alone, under its lock."""

    number: int
    client: Client
    # Posts since the last report, by how they ended: ok, again, rejected.
    attempts: Counter[str] = field(default_factory=Counter)
    # How many alerts waited for it at the last report, and since when the oldest of them.
    waiting: int = 0
    oldest: float | None = None
    succeeded_at: float | None = None
    # Failures in a row, and when to post again (Unix seconds).
    failures: int = 0
    not_before: float = 0.0
    # How many changes of the receiver's state it has seen.
    seen: int = 0

    def note(self, error: NotDeliveredError | None, now: float) -> None:
        """Counts a post, and sets when the next one is allowed. `now`: Unix seconds."""
        failures, self.failures, self.not_before = self.failures, 0, now
        if error is None:
            self.attempts["ok"] += 1
            self.succeeded_at = now
        elif error.refused:
            self.attempts["rejected"] += 1
        else:
            self.attempts["again"] += 1
            backoff = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(failures, 10))
            self.failures, self.not_before = failures + 1, now + (error.after_seconds or backoff)

    def log(self, failures: int, error: NotDeliveredError | None, refused: Sequence[Alert]) -> None:
        """Logs refused alerts, and the first and the last of `failures` in a row before this."""
        if error is not None and refused:
            log.error(
                "receiver refused alerts",
                receiver=self.client.name,
                reason=f"{error}: {error.text}" if error.text else str(error),
                alerts=len(refused),
                fingerprints=[alert.fingerprint for alert in refused[:NAMED]],
            )
        elif error is not None and not (failures or error.refused):
            log.warning(
                "receiver does not take alerts, retrying",
                receiver=self.client.name,
                reason=str(error),
            )
        elif error is None and failures:
            log.info("receiver takes alerts again", receiver=self.client.name)
