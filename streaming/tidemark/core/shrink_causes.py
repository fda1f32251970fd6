"""Why a broker left an in-sync set, and how sure that is."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


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
    """`recorded`: a record of the metadata log gives the cause. Otherwise it is a suspicion."""

    cause: ShrinkCause
    recorded: bool = False
