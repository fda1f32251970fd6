"""All drills, and why a story of the model has none."""

from __future__ import annotations

from typing import Final

from tidemark.core.errors import ConfigError
from tidemark_lab.drills.drill import Drill
from tidemark_lab.drills.schedules import (
    causes,
    cleaning,
    elections,
    exercises,
    followers,
    historic,
    leaders,
    protocol,
    routine,
)

_MODULES: Final = (
    *(elections, leaders, followers, causes),
    *(protocol, exercises, routine, cleaning, historic),
)
DRILLS: Final[dict[str, Drill]] = {
    drill.name: drill
    for module in (
        elections,
        leaders,
        followers,
        causes,
        protocol,
        exercises,
        routine,
        cleaning,
        historic,
    )
    for drill in vars(module).values()
    if isinstance(drill, Drill)
}
# Story of `tidemark model list` -> why brokers cannot play it, or which drill does.
NOT_PLAYED: Final = {
    "uneven-followers": "the drill follower-rounds plays it",
    "consumer-visibility": "the drill fetch-rounds plays it",
    "request-of-two-partitions": "it shows lists in the purgatory that brokers do not report",
    "purgatory-race": "the race is within one broker, and lasts microseconds",
    "last-stable-offset": "the drill hanging-transaction plays it",
    "acks-0-1-all": "the drill fetch-rounds plays it",
    "hw-truncation-loss-acks-1": "the drill hw-truncation-loss plays it: the replicas do the same",
    "epoch-reply-never-comes": "the drill hw-truncation-loss plays it on 0.11.0.3",
    "epoch-without-records": "an election would have to come between two fetches of a follower",
    "lag-max-messages": "0.9 removed the option; the oldest version here is 0.10.2",
    "fetch-without-leader-epoch": "no released Kafka has this protocol",
}


def find_drill(name: str) -> Drill:
    """Raises ConfigError for a name that no drill has."""
    drill = DRILLS.get(name)
    if drill is not None:
        return drill
    if name in NOT_PLAYED:
        raise ConfigError(f"the story {name} has no drill: {NOT_PLAYED[name]}.")
    raise ConfigError(f"no drill is named {name}; `tidemark drill list` names them.")
