"""`tidemark ack`: close an event alert."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from tidemark.command_line import output
from tidemark.command_line.options import (
    FiniteRange,
    bootstrap_option,
    command_config_option,
    config_option,
    load_with,
)
from tidemark.command_line.places import partition_of
from tidemark.core.alert_records import decode_alerts, newest_by, place
from tidemark.core.codec import encode_lone_event
from tidemark.core.errors import ConfigError
from tidemark.core.events import Ack
from tidemark.core.records import Alert
from tidemark.core.text import rfc3339, table, utc
from tidemark.kafka.client import choose_connection
from tidemark.kafka.send import send_to_topic
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.settings import Settings

_IDENTITY: Final = {"kafka_cluster", "alertname", "severity"}
# A shorter prefix of a fingerprint is probably a typing error.
MIN_PREFIX: Final = 6


@click.command("ack")
@click.argument("words", metavar="[FINGERPRINT|ID|INCIDENT|TOPIC-PARTITION]", nargs=-1)
@config_option
@command_config_option
@bootstrap_option
@click.option("--by", metavar="NAME", help="Your name. Default: the login name.")
@click.option("--comment", metavar="TEXT", help="The reason.")
@click.option(
    "--wait",
    "seconds",
    type=FiniteRange(0, 600),
    default=10.0,
    show_default=True,
    help="Seconds to wait until the stream has closed the alert.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, of alert records.")
def ack(
    words: tuple[str, ...],
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    by: str | None,
    comment: str | None,
    seconds: float,
    as_json: bool,
) -> None:
    """Close an event alert, such as a loss or an unclean election.

    The prefix of a fingerprint is enough. Of a partition, close all that are open. Without an
    argument, list the open event alerts.
    """
    selector = " ".join(words) if words else None
    if selector is not None and not selector.strip():
        raise ConfigError(
            "give a fingerprint, id, incident or partition; `tidemark ack` without arguments lists "
            "the alerts."
        )
    settings = load_with(config, command_config)
    settings.kafka = choose_connection(settings, bootstrap)
    by = by if by is not None else _login_name()
    for option, text, maximum in (("--by", by, 255), ("--comment", comment or "", 1024)):
        if len(text) > maximum:
            raise ConfigError(f"{option} has {len(text)} characters; the maximum is {maximum}.")
    with TopicReader(settings.kafka, settings.topics.alerts) as log:
        newest = newest_alerts(decode_alerts(values(log.read_to_end())))
        if selector is None:
            _list(open_events(newest), as_json=as_json)
            return
        selected = select_alerts(newest, selector)
        to_close = [alert for alert in selected if is_open(alert)]
        echo: Callable[[str], object] = (lambda _: None) if as_json else output.echo
        for alert in selected:
            if not is_open(alert):
                ended = f"{alert.reason or 'resolved'} at {rfc3339(alert.ends_at or alert.at)}"
                echo(f"{describe(alert)} is already closed: {ended}.")
        waiting: list[Alert] = []
        if to_close:
            _send(settings, [ack_record(alert, by, comment, time.time()) for alert in to_close])
            waiting = _confirm(log, to_close, by, seconds, echo)
        if as_json:
            closed = [alert for alert in to_close if alert not in waiting]
            before = [alert for alert in selected if not is_open(alert)]
            document = {"by": by, "closed": closed, "already_closed": before, "sent": waiting}
            output.echo(msgspec.json.encode(document))


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container that runs as an arbitrary user id.
        raise ConfigError("this user has no login name; give one with --by NAME.") from None


def _list(alerts: Sequence[Alert], *, as_json: bool) -> None:
    if as_json:
        output.echo(msgspec.json.encode({"open": alerts}))
        return
    rows = [
        (
            a.fingerprint,
            utc(a.starts_at),
            a.labels["severity"],
            a.annotations.get("description", ""),
        )
        for a in alerts
    ]
    lines = table([("FINGERPRINT", "SINCE", "SEVERITY", "DESCRIPTION"), *rows])
    output.echo("\n".join(lines) if rows else "no event alert is open.")


def _send(settings: Settings, records: list[bytes]) -> None:
    """Sends every record to every Kafka partition: only the group that holds the alert uses it."""
    send_to_topic(
        settings.kafka,
        settings.topics.replica_state,
        lambda groups: [(group, None, record) for record in records for group in range(groups)],
        "The alerts may still be open: try again.",
    )


def _confirm(
    log: TopicReader,
    alerts: Sequence[Alert],
    by: str,
    seconds: float,
    echo: Callable[[str], object],
) -> list[Alert]:
    """Reports for each alert whether the stream closed it in time; returns those that are open."""
    waiting = {alert.fingerprint: alert for alert in alerts}
    deadline = time.monotonic() + seconds
    while waiting and time.monotonic() < deadline:
        for record in decode_alerts(values(log.fetch())):
            alert = waiting.get(record.fingerprint)
            if alert is not None and not is_open(record) and record.at >= alert.at:
                del waiting[record.fingerprint]
                echo(f"closed: {describe(alert)}, {record.reason or 'resolved'} by {by}.")
    for alert in waiting.values():
        echo(
            f"sent: {describe(alert)}, by {by}. The stream has not closed it yet; "
            "is `tidemark stream` running?"
        )
    return list(waiting.values())


def newest_alerts(alerts: Iterable[Alert]) -> dict[str, Alert]:
    """The newest record of each alert by fingerprint."""
    complete = (alert for alert in alerts if alert.labels.keys() >= _IDENTITY)
    return newest_by(lambda alert: alert.fingerprint, complete)


def is_event(alert: Alert) -> bool:
    """Whether an alert reports an event. Only such alerts can be closed by hand."""
    return "incident" in alert.labels


def is_open(alert: Alert) -> bool:
    return alert.state != "resolved"


def open_events(newest: Mapping[str, Alert]) -> list[Alert]:
    """Open event alerts, the oldest first."""
    events = [alert for alert in newest.values() if is_event(alert) and is_open(alert)]
    return sorted(events, key=lambda alert: (alert.starts_at, alert.fingerprint))


def select_alerts(newest: Mapping[str, Alert], selector: str) -> list[Alert]:
    """Event alerts by fingerprint (or its prefix), record id, incident or partition.

    Of a partition, the open ones. Open alerts come first. Raises ConfigError for no match, an
    ambiguous prefix, or an alert about a state.
    """
    wanted = selector.strip().lower()
    fingerprint = wanted.partition(".")[0]
    found = [
        alert
        for alert in newest.values()
        if fingerprint == alert.fingerprint or wanted == alert.labels.get("incident")
    ]
    if not found and len(wanted) >= MIN_PREFIX:
        found = [alert for known, alert in newest.items() if known.startswith(wanted)]
        if len(found) > 1:
            raise ConfigError(
                f"{len(found)} alerts begin with {selector}; give the whole fingerprint."
            )
    if not found:
        found = _of_partition(newest.values(), selector)
    if not found:
        raise ConfigError(
            "no alert of the last 7 days has the fingerprint, id, incident or partition "
            f"{selector}. `tidemark ack` without arguments lists the open ones."
        )
    for alert in found:
        if not is_event(alert):
            raise ConfigError(
                f"{describe(alert)} is about a state: it resolves when its cause is gone and "
                "cannot be acknowledged. To mute it, use a silence in Alertmanager or "
                "notify.maintenance."
            )
    return sorted(found, key=lambda alert: (not is_open(alert), alert.starts_at))


def _of_partition(alerts: Iterable[Alert], selector: str) -> list[Alert]:
    """Open event alerts of the partition; alerts about its state where there are no others."""
    try:
        place = partition_of(selector)
    except click.BadParameter:
        return []
    found = [
        alert
        for alert in alerts
        if (alert.labels.get("topic"), alert.labels.get("partition"))
        == (place.topic, str(place.partition))
        and place.cluster in (None, alert.labels["kafka_cluster"])
        and is_open(alert)
    ]
    clusters = sorted({alert.labels["kafka_cluster"] for alert in found})
    if len(clusters) > 1:
        raise ConfigError(
            f"{place} is in several clusters; write {clusters[0]}/{place} or another of "
            f"{', '.join(clusters)}."
        )
    return [alert for alert in found if is_event(alert)] or found


def describe(alert: Alert) -> str:
    """An alert's name, place and fingerprint."""
    return f"{alert.labels['alertname']} {place(alert)} ({alert.fingerprint})"


def ack_record(alert: Alert, by: str, comment: str | None, now: float) -> bytes:
    """The batch that closes an alert, for every Kafka partition of the event topic.

    An operator's clock may be behind the collector's; the end of an alert is never before its last
    transition.
    """
    now = max(now, alert.at)
    topic, partition = alert.labels.get("topic"), alert.labels.get("partition", "")
    event = Ack(
        fingerprint=alert.fingerprint,
        observed_at=now,
        topic=topic,
        partition=int(partition) if topic is not None and partition.isdecimal() else None,
        by=by,
        comment=comment,
    )
    return encode_lone_event(alert.labels["kafka_cluster"], "tidemark-ack", event)
