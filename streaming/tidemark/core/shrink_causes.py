"""Why a broker left an in-sync set, and how sure that is."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class ShrinkCause(StrEnum):
    """The values are those of `suspected_cause` in evidence and of the metric's label `cause`."""

    LEADER_SHRINK = "the leader's own shrink"
    NO_ANSWER = "does not answer"
    STOPPED_OR_FENCED = "stopped or fenced"
    FENCING = "fencing"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    REASSIGNMENT = "reassignment"
    UNKNOWN = "unknown"


class ShrinkExplanation(NamedTuple):
    """`recorded`: a record of the metadata log gives the cause. Otherwise it is a suspicion.

    `suspect`: the broker that made it late then, where other partitions showed it.
    """

    cause: ShrinkCause
    recorded: bool = False
    suspect: int | None = None


# The broker that left is itself the cause.
OF_THE_BROKER: Final = (
    ShrinkCause.NO_ANSWER,
    ShrinkCause.STOPPED_OR_FENCED,
    ShrinkCause.FENCING,
    ShrinkCause.CONTROLLED_SHUTDOWN,
)
