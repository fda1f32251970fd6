"""`/api/v1/safe-to-stop`: whether an operator's rolling loop may stop a broker now.

One lease a cluster: who gets a yes keeps others from it until the lease ends, so that two loops
cannot stop two brokers of which each alone is safe. Leases are in the memory of this process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tidemark.assess.losses import LOSS, held_losses
from tidemark.assess.safe_to_stop import EFFECT_TEXTS, MAX_MARGIN
from tidemark.core.events import OK
from tidemark.core.text import duration, rfc3339
from tidemark_exporters.pages.query import NotFoundError, Query
from tidemark_exporters.pages.snapshot import TableSnapshot

NAME: Final = "safe-to-stop"
PARAMETERS: Final = ("cluster", "broker", "margin", "lease_seconds")
LEASE_SECONDS: Final = 300
MAX_LEASE_SECONDS: Final = 3_600
# Samples of this many periods may be missing.
MAX_PASSES: Final = 3
# Beside them: a pass without news is published with the next one, and folding takes a moment.
PUBLISHED_LATER_MS: Final = 2_000.0
# Partitions that the reasons name.
MAX_NAMED: Final = 20


class _Lease(NamedTuple):
    broker: int
    until: float


class StopPermissions:
    """The leases of all clusters. Called by many threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._leases: dict[str, _Lease] = {}

    def answer(
        self, raw_query: str, snapshot: TableSnapshot, waiting: list[str], *, take: bool
    ) -> tuple[bool, dict[str, Any]]:
        """Whether the stop is safe, and the answer: `reasons` why it is not, or `lease_until`.

        `take`: a yes takes or renews the lease of the cluster. Raises BadRequestError, and
        NotFoundError for an unknown cluster or broker.
        """
        query = Query(raw_query, PARAMETERS)
        cluster = query.required("cluster")
        broker = query.required_number("broker", 2**31 - 1)
        margin = query.number("margin", 0, MAX_MARGIN) or 0
        seconds = query.number("lease_seconds", 1, MAX_LEASE_SECONDS) or LEASE_SECONDS
        if cluster not in snapshot.clusters:
            raise NotFoundError(f"cluster {cluster[:100]!r} is not known.")
        if broker not in snapshot.brokers_of(cluster):
            raise NotFoundError(f"cluster {cluster} has no broker {broker}.")
        reasons = [f"the exporter is still reading {each}" for each in waiting]
        reasons += _reasons(snapshot, cluster, broker, margin, self._clock())
        with self._lock:
            now = self._clock()
            lease = self._leases.get(cluster)
            if lease is not None and lease.until > now and lease.broker != broker:
                reasons.append(f"broker {lease.broker} has the lease until {rfc3339(lease.until)}")
            found = {"cluster": cluster, "broker": broker, "margin": margin}
            if reasons:
                return False, {**found, "safe": False, "reasons": reasons}
            until = now + seconds
            if take:
                self._leases[cluster] = _Lease(broker, until)
        return True, {**found, "safe": True, "lease_until": rfc3339(until)}


def _reasons(
    snapshot: TableSnapshot, cluster: str, broker: int, margin: int, now: float
) -> list[str]:
    reasons = []
    if not snapshot.can_judge(cluster):
        reasons.append("too little is known of the cluster")
    whole = snapshot.cluster_views.get(cluster)
    period_ms = None if whole is None else whole.period_ms
    age_ms = (now - snapshot.newest.get(cluster, 0.0)) * 1000
    if period_ms is None:
        reasons.append("no pass over the cluster was evaluated")
    elif age_ms > MAX_PASSES * period_ms + PUBLISHED_LATER_MS:
        newest = f"the newest samples are {duration(age_ms)} old"
        reasons.append(f"{newest}, more than {MAX_PASSES} passes of {duration(period_ms)}")
    for each in snapshot.brokers_of(cluster):
        outcome = snapshot.broker_outcome(cluster, each)
        if outcome != OK:
            reasons.append(f"broker {each} does not answer ({outcome or 'it was not asked'})")
    lost = (
        each.view
        for each in snapshot.partitions_of(cluster)
        if any(a.labels.get("alertname") == LOSS for a in each.alerts)
    )
    reasons += held_losses(lost, broker)[:MAX_NAMED]
    impacts = snapshot.stop_impacts(cluster, broker, MAX_NAMED + 1, margin=margin)
    reasons += [
        f"{each.topic}-{each.partition} {EFFECT_TEXTS[each.effect]}: {each.detail}"
        for each in impacts[:MAX_NAMED]
    ]
    if len(impacts) > MAX_NAMED:
        reasons.append("more partitions are affected")
    return reasons
