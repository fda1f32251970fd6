"""What the pages show of JMX: its nodes, and unclean elections beside those that were reported."""

from __future__ import annotations

from typing import Final, NamedTuple

from tidemark.core.records import JmxView
from tidemark_exporters.pages.alerts import AlertHistory, select_alerts
from tidemark_exporters.pages.snapshot import TableSnapshot

UNCLEAN: Final = "KafkaUncleanElection"


class UncleanElections(NamedTuple):
    """Since `since`: as a controller counted them, and alerts of Tidemark about them."""

    since: float
    by_jmx: int
    reported: int


def jmx_nodes(snapshot: TableSnapshot, cluster: str) -> list[tuple[str, JmxView]]:
    """The nodes of a cluster whose JMX is read, by number: brokers and controllers."""
    found = {
        str(broker): view.jmx
        for (name, broker), view in snapshot.broker_views.items()
        if name == cluster and view.jmx is not None
    }
    whole = snapshot.cluster_views.get(cluster)
    if whole is not None:
        found |= whole.jmx_of_nodes
    return sorted(found.items(), key=lambda item: (len(item[0]), item[0]))


def unclean_elections(
    snapshot: TableSnapshot, history: AlertHistory, cluster: str
) -> UncleanElections | None:
    """By the controller that has counted for the longest time; None where none is read.

    Each controller counts every election that it replays.
    """
    counted = [
        (jmx.unclean_leader_elections_since, jmx.unclean_leader_elections)
        for _, jmx in jmx_nodes(snapshot, cluster)
        if jmx.unclean_leader_elections is not None
        and jmx.unclean_leader_elections_since is not None
    ]
    if not counted:
        return None
    since = min(at for at, _ in counted)
    labels = {"kafka_cluster": cluster, "alertname": UNCLEAN}
    reported = {
        alert.labels.get("incident", alert.fingerprint)
        for alert in select_alerts(snapshot.open_alerts, labels)
        if alert.starts_at >= since
    } | {
        past.incident or past.alert().fingerprint
        for past in select_alerts(history.newest_first(), labels)
        if past.starts_at >= since
    }
    return UncleanElections(since, max(n for at, n in counted if at == since), len(reported))
