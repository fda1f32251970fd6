"""The alerts that each scene must cause: one table, to be compared with the runbooks. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tidemark_lab.judge.expected import Expected

HEALTHY: Final = "healthy"
PAUSED: Final = "follower paused"
ROLLING: Final = "rolling restart"
UNCLEAN: Final = "unclean election"
SCENES: Final = (HEALTHY, PAUSED, ROLLING, UNCLEAN)

# The faults of a scene, in order. An alert's latency counts from the fault that causes it.
PAUSE_FOLLOWER: Final = "a follower hangs"
KILL_FOLLOWER: Final = "follower killed"
KILL_LEADER: Final = "leader killed"
RETURN_STALE: Final = "stale follower returns"
RETURN_LEADER: Final = "old leader returns"

# Broker 1 leads the watched partition, broker 2 follows; broker 3 leads Tidemark's own topics.
LEADER: Final = 1
FOLLOWER: Final = 2
OWN_TOPICS_LEADER: Final = 3


def _of_a_silent_follower(fault: str) -> tuple[Expected, ...]:
    return (
        Expected("FOLLOWER_LAG", fault, broker=FOLLOWER, resolves=True),
        Expected("BROKER_DOWN", fault, broker=FOLLOWER, resolves=True),
        Expected("ISR_CHANGE", fault, resolves=True),
        Expected("LEADER_ALONE", fault, resolves=True),
    )


# By scene: one table, to be compared with the runbooks.
EXPECTED: Final[Mapping[str, tuple[Expected, ...]]] = {
    HEALTHY: (),
    PAUSED: _of_a_silent_follower(PAUSE_FOLLOWER),
    ROLLING: (),
    UNCLEAN: (
        *_of_a_silent_follower(KILL_FOLLOWER),
        Expected("OFFLINE", KILL_LEADER, resolves=True),
        Expected("UNCLEAN_ELECTION", RETURN_STALE),
        Expected("COMMITTED_DATA_LOSS", RETURN_STALE),
        Expected("LOG_TRUNCATION", RETURN_LEADER, broker=LEADER, follows=True),
    ),
}
