"""What a scenario is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidemark.model.protocols import PROTOCOLS
from tidemark.model.replica_manager.broker import create
from tidemark.model.scenarios.play import Play


class Scenario(NamedTuple):
    """A story of one partition. `script` plays it; `protocols` are those under which it says something, the first by default."""

    name: str
    question: str
    protocols: tuple[str, ...]
    brokers: int
    script: Callable[[Play], None]
    min_in_sync_replicas: int = 1

    def play(self, protocol: str | None = None) -> Play:
        """Plays the story under a protocol. Any of them will do; under some it is not worth telling."""
        chosen = PROTOCOLS[protocol or self.protocols[0]]
        play = Play(create(chosen, self.brokers, self.min_in_sync_replicas))
        self.script(play)
        return play
