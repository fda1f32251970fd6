"""What the escrow cannot do now: logged when it begins and when it is over, and told by health."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError
from tidemark.kafka.client import reason_of

log = structlog.get_logger()


class Failures(dict[str, str]):
    """Why, by what it could not do. Used by two threads."""

    def attempt(self, purpose: str, act: Callable[[], object]) -> bool:
        """Whether it succeeded. Raises nothing that Kafka says."""
        try:
            act()
        except (ClusterError, kafka_errors.KafkaError) as error:
            self.note(purpose, reason_of(error))
            return False
        self.note(purpose, None)
        return True

    def note(self, purpose: str, why: str | None) -> None:
        """None: it can do it."""
        before = self.pop(purpose, None)
        if why is not None:
            self[purpose] = why
        if why != before:
            log.warning("escrow cannot go on" if why else "escrow goes on", what=purpose, error=why)
