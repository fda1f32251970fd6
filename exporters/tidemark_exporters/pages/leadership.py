"""Who would lead a partition: if its leader died now, and where one has to be chosen."""

from __future__ import annotations

from typing import Any, Final

from tidemark.assess.election_commands import election_commands
from tidemark.assess.isr_removal import countdowns
from tidemark.assess.leader_choice import choose_leader
from tidemark.assess.leader_death import if_leader_died
from tidemark.assess.losses import open_losses
from tidemark.core.records import View
from tidemark_exporters.export.at_risk import AtRisk
from tidemark_exporters.pages.snapshot import ListedPartition, TableSnapshot

# Partitions at risk on a broker's page.
MAX_AT_RISK: Final = 20


def leadership(view: View, now: float, lag_threshold_ms: float) -> dict[str, Any]:
    """The variables of leadership.html."""
    made = choose_leader(view) if view.replicas and needs_choice(view) else None
    best = None if made is None else made.best
    return {
        "death": if_leader_died(view),
        "choice": made,
        "open_losses": open_losses(view),
        "commands": [] if best is None else election_commands(view, best),
        "countdowns": countdowns(view, now, lag_threshold_ms),
    }


def needs_choice(view: View) -> bool:
    """Whether an operator may have to choose a leader: none serves, or too few are in sync."""
    members, minimum = view.in_sync_replicas, view.effective_min_in_sync_replicas
    if view.leader is None or view.last_committed is not None:
        return True
    return members is not None and minimum is not None and len(members) < minimum


def partitions_at_risk(
    snapshot: TableSnapshot, cluster: str, broker: int
) -> list[tuple[ListedPartition, AtRisk]]:
    """Of the partitions that the broker leads; the most committed records first."""
    found = [
        (each, risk)
        for each in snapshot.partitions_of(cluster)
        if (risk := each.row.progress.at_risk) is not None
        and risk.leader == broker
        and (risk.committed or risk.uncommitted)
    ]
    # Partitions are by name.
    found.sort(key=lambda pair: (-pair[1].committed, -pair[1].uncommitted))
    return found[:MAX_AT_RISK]
