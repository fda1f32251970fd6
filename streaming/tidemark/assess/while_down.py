"""What a broker costs while it stays down for its log to be copied, as far as views show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tidemark.assess.health import judge_replication
from tidemark.assess.losses import LOSS, held_losses
from tidemark.assess.safe_to_stop import ANY_LAG, candidates_of
from tidemark.core.identity import alert_name
from tidemark.core.links import broker_to_save, holder_entries
from tidemark.core.records import Alert, OpenAlert, View
from tidemark.core.text import counted

# The annotation of an alert that asks to keep a broker down.
WHILE_DOWN: Final = "while_down"
# Those alerts: of others the last leader is one to bring back.
SAVES: Final = frozenset({LOSS, alert_name("UNCLEAN_ELECTION")})
# Of a cluster; healthy partitions may be left out.
ViewsOf = Callable[[str], Iterable[View]]


def cost_of_saving(
    alert: Alert | OpenAlert, views_of: ViewsOf, led_at: Mapping[str, float] | None = None
) -> str | None:
    """What it costs to leave the broker down whose log the alert asks to save; None: not known.

    Of another alert: the loss of which the disk of its broker has, or may have, the records.
    `led_at`: when partitions (`alert_records.place`) had a leader, by alerts newer than the views.
    """
    views, named = views_of(alert.labels.get("kafka_cluster", "")), alert.labels.get("broker", "")
    if alert.labels.get("alertname") not in SAVES:
        is_number = named.isascii() and named.isdecimal()
        return next(iter(held_losses(views, int(named))), None) if is_number else None
    broker = broker_to_save(alert.evidence)
    holders = holder_entries(alert.evidence.get("records_held_by"))
    cut = [each.get("broker") for each in holders if each.get("state") == "cut"]
    return None if broker is None or broker in cut else while_down(broker, views, led_at)


def while_down(
    broker: int, views: Iterable[View], led_at: Mapping[str, float] | None = None
) -> str | None:
    """None: no view shows that it is down, or one shows that it answers."""
    placed = [view for view in views if broker in view.assigned]
    seen = [
        (view, replica)
        for view in placed
        for replica in view.replicas
        if replica.broker == broker and not view.missed_passes and not _is_old(view, led_at or {})
    ]
    lacking = [
        view
        for view, _ in seen
        if view.leaderless or broker not in (view.in_sync_replicas or [broker])
    ]
    if not lacking or any(replica.error is None for _, replica in seen):
        return None
    led = [judge_replication(view) for view in lacking if not view.leaderless]
    counts = {
        "at min ISR": sum(each.at_min for each in led),
        "under min ISR": sum(each.under_min for each in led),
        "offline": len(lacking) - len(led),
    }
    parts = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    least = "at least " if len(seen) < len(placed) else ""
    verb = "lacks" if len(lacking) == 1 else "lack"
    text = f"{least}{counted(len(lacking), 'partition')} {verb} its replica"
    return (
        f"While broker {broker} is down, {text}{': ' if parts else ''}{parts}."
        f"{_only_copy(broker, lacking)}"
    )


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


def _is_old(view: View, led_at: Mapping[str, float]) -> bool:
    """Whether it shows no leader, and an alert that is newer shows one."""
    return view.leaderless and view.at < led_at.get(
        f"{view.kafka_cluster}/{view.topic}-{view.partition}", 0.0
    )
