"""What a broker costs while it stays down for its log to be copied, as far as views show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tidemark.assess.candidates import ANY_LAG, candidates_of
from tidemark.assess.health import judge_replication
from tidemark.core.links import broker_to_save
from tidemark.core.record_holders import holder_entries
from tidemark.core.records import Alert, OpenAlert, View
from tidemark.core.text import counted

# The annotation of an alert that asks to keep a broker down.
WHILE_DOWN: Final = "while_down"
ViewsOn = Callable[[str, int], Iterable[View]]


def cost_of_saving(alert: Alert | OpenAlert, views_on: ViewsOn) -> str | None:
    """What it costs to leave the broker down whose log the alert asks to save; None: not known.

    `views_on`: of a cluster and a broker, the views of the partitions that have a replica there;
    healthy ones may be left out.
    """
    broker, cluster = broker_to_save(alert.evidence), alert.labels.get("kafka_cluster")
    holders = holder_entries(alert.evidence.get("records_held_by"))
    cut = [each.get("broker") for each in holders if each.get("state") == "cut"]
    if broker is None or cluster is None or broker in cut:
        return None
    return while_down(broker, views_on(cluster, broker))


def while_down(broker: int, views: Iterable[View]) -> str | None:
    """None: no view shows that it is down, or one shows that it answers."""
    unseen, answers = 0, set[bool]()
    lacking = list[View]()
    for view in views:
        mine = next((each for each in view.replicas if each.broker == broker), None)
        if view.missed_passes or mine is None:
            unseen += broker in view.assigned
            continue
        answers.add(mine.error is None)
        if view.leaderless or broker not in (view.in_sync_replicas or [broker]):
            lacking.append(view)
    if answers != {False} or not lacking:
        return None
    found = [judge_replication(view) for view in lacking if not view.leaderless]
    counts = {
        "at min ISR": sum(each.at_min for each in found),
        "under min ISR": sum(each.under_min for each in found),
        "offline": sum(view.leaderless for view in lacking),
    }
    parts = [f"{count} {what}" for what, count in counts.items() if count]
    verb = "lacks" if len(lacking) == 1 else "lack"
    text = (
        f"While broker {broker} is down, {'at least ' if unseen else ''}"
        f"{counted(len(lacking), 'partition')} {verb} its replica"
        f"{': ' if parts else ''}{', '.join(parts)}."
    )
    return text + _only_copy(broker, lacking)


def _only_copy(broker: int, lacking: Iterable[View]) -> str:
    only = [
        f"{view.topic}-{view.partition}"
        for view in lacking
        if view.leaderless and candidates_of(view, ANY_LAG).brokers == {broker}
    ]
    if not only:
        return ""
    more = f" and {len(only) - 1} more" if len(only) > 1 else ""
    return (
        f" It has the only copy of {only[0]}{more} that can lead: copy in minutes, and start it "
        "even if the copy fails. Not to do so is a decision of the owner of the records."
    )
