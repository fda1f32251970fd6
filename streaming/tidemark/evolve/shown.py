"""What an observation shows beyond the state that it leaves: the judgements of states use it."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.core.events import OpenTransaction
from tidemark.core.leader_epochs import LineageEntries


class Shown(NamedTuple):
    """Of one observation alone; a state also remembers earlier ones."""

    # The leader that the metadata names, and the brokers that gave this metadata.
    leader: int | None
    metadata_from: list[int]
    in_sync_replicas: list[int] | None
    # A high watermark that the leader of the state reported under the fence of its epoch.
    committed: int | None
    # Lineages that were read in this pass, also impossible ones: of replicas, and of the leader.
    lineages: dict[int, LineageEntries]
    leader_lineage: LineageEntries | None
    compacted: bool | None
    open_transaction: OpenTransaction | None
