"""The commands of Kafka's own tools that elect a replica. Tidemark never runs them.

Kafka elects by the order of the assignment: a preferred election takes its first replica, an
unclean one its first live replica. So the order comes first.
"""

from __future__ import annotations

import json
import shlex
from typing import Final, NamedTuple

from tidemark.assess.leader_choice import Choice
from tidemark.core.records import View

BOOTSTRAP_VARIABLE: Final = '"$BOOTSTRAP"'


class Command(NamedTuple):
    """A shell command, and what it is for."""

    purpose: str
    text: str


def election_commands(view: View, choice: Choice, bootstrap: str | None = None) -> list[Command]:
    """How to make `choice` the leader, in order. Empty: it leads, or Kafka would refuse.

    Kafka elects uncleanly only where no leader serves. A new order would change a reassignment
    that is under way.

    `bootstrap`: host:port,…; without it the commands read the variable BOOTSTRAP.
    """
    assert view.topic is not None and view.partition is not None, "a partition's view"
    unclean = not choice.loses_nothing
    if choice.standing == "leader" or not choice.answers or view.adding or view.removing:
        return []
    if unclean and view.leader is not None:
        return []
    servers = BOOTSTRAP_VARIABLE if bootstrap is None else shlex.quote(bootstrap)
    others = [broker for broker in view.assigned if broker != choice.broker]
    order = [choice.broker, *others]
    place = f"--topic {shlex.quote(view.topic)} --partition {view.partition}"
    kind = "unclean" if unclean else "preferred"
    election = Command(
        f"elect broker {choice.broker}"
        + (f", which {'loses' if choice.committed else 'may lose'} records" if unclean else ""),
        f"kafka-leader-election.sh --bootstrap-server {servers} --election-type {kind} {place}",
    )
    if order == view.assigned:
        return [election]
    return [
        Command(
            f"put broker {choice.broker} first; no data moves",
            _reassign(view, order, servers),
        ),
        election,
        Command("afterwards, restore the order", _reassign(view, view.assigned, servers)),
    ]


def _reassign(view: View, order: list[int], servers: str) -> str:
    """kafka-reassign-partitions reads its plan from a file."""
    plan = json.dumps(
        {
            "version": 1,
            "partitions": [{"topic": view.topic, "partition": view.partition, "replicas": order}],
        }
    )
    return (
        f"echo {shlex.quote(plan)} > order.json && kafka-reassign-partitions.sh "
        f"--bootstrap-server {servers} --reassignment-json-file order.json --execute"
    )
