"""A scenario: a question about replication, and the steps that answer it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager.broker import create
from tidemark_lab.model.scenarios.run import ScenarioRun


class Scenario(NamedTuple):
    """A scenario of one partition.

    `script` are its steps: see `ScenarioRun.execute`. `protocols` are its main protocols, the
    default first. Under those in `unclean_leader_election` the topic allows unclean elections.
    """

    name: str
    question: str
    protocols: tuple[str, ...]
    brokers: int
    script: str
    min_in_sync_replicas: int = 1
    unclean_leader_election: tuple[str, ...] = ()
    # replica.lag.max.messages, under the protocol of the releases that had it.
    lag_max_messages: int | None = None

    def run(
        self, protocol: str | None = None, min_in_sync_replicas: int | None = None
    ) -> ScenarioRun:
        """Runs the scenario under any protocol, with its own min ISR or another one."""
        chosen = PROTOCOLS[protocol or self.protocols[0]]
        cluster = create(
            chosen,
            self.brokers,
            min_in_sync_replicas or self.min_in_sync_replicas,
            unclean_leader_election=chosen.name in self.unclean_leader_election,
        )
        if not chosen.leader_epochs:
            cluster = replace(cluster, lag_max_messages=self.lag_max_messages)
        run = ScenarioRun(cluster)
        run.execute(*self.script.splitlines())
        return run
