"""`tidemark ack`: an operator closes an event alert."""

from __future__ import annotations

import getpass
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from kafka import errors as kafka_errors

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.records import Alert
from tidemark.kafka.client import choose_connection, make_producer, quiet_client_logs
from tidemark.kafka.topic_reader import TopicReader, values
from tidemark.settings import Settings, load_settings
from tidemark.verbs.ack.choice import (
    ack_record,
    chosen_alerts,
    describe,
    is_open,
    newest_alerts,
    open_events,
)
from tidemark.verbs.inspect.losses import iso
from tidemark.verbs.inspect.losses_command import alerts_in

SEND_SECONDS: Final = 15.0


@click.command(
    "ack",
    help="Close an event alert (a loss, an unclean election, …). Without FINGERPRINT: list those that are open.",
)
@click.argument("mark", metavar="[FINGERPRINT|ID|INCIDENT]", required=False)
@click.option(
    "--config", type=click.Path(path_type=Path), envvar="TIDEMARK_CONFIG", help="The YAML file."
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT,…",
    help="The Kafka that holds Tidemark's topics, without a file.",
)
@click.option("--by", help="Who closes it; the login name by default.")
@click.option("--comment", help="Why.")
@click.option(
    "--wait",
    "seconds",
    type=click.FloatRange(0, 600),
    default=10.0,
    show_default=True,
    help="Seconds to wait for the stream's word.",
)
def ack(
    mark: str | None,
    config: Path | None,
    bootstrap: str | None,
    by: str | None,
    comment: str | None,
    seconds: float,
) -> None:
    quiet_client_logs()
    settings = load_settings(config)
    settings.kafka = choose_connection(settings, bootstrap)
    who = by if by is not None else _login()
    for option, value, limit in (("--by", who, 255), ("--comment", comment or "", 1024)):
        if len(value) > limit:
            raise ConfigError(f"{option} has {len(value)} characters; it may have {limit}.")
    with TopicReader(settings.kafka, settings.topics.alerts) as log:
        newest = newest_alerts(alerts_in(values(log.read_to_end())))
        if mark is None:
            _list(open_events(newest))
            return
        chosen = chosen_alerts(newest, mark)
        for alert in chosen:
            if not is_open(alert):
                click.echo(
                    f"{describe(alert)} is closed already: {alert.reason or 'resolved'} at {iso(alert.ends_at or alert.at)}. Nothing to do."
                )
        left = [alert for alert in chosen if is_open(alert)]
        if not left:
            return
        _send(settings, [ack_record(alert, who, comment, time.time()) for alert in left])
        _confirm(log, left, who, seconds)


def _login() -> str:
    """The login name; a process without one (a container's random user) has to be told."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ConfigError(
            "this user has no login name; say who closes the alert by --by NAME."
        ) from None


def _list(alerts: Sequence[Alert]) -> None:
    if not alerts:
        click.echo("no event alert is open.")
    for alert in alerts:
        click.echo(
            f"{alert.fingerprint}  since {iso(alert.starts_at)}  {alert.labels['severity']:8}  {alert.annotations.get('description', '')}"
        )


def _send(settings: Settings, records: list[bytes]) -> None:
    """Every record to every Kafka partition: whichever group holds the alert closes it, the others find nothing."""
    topic = settings.topics.replica_state
    producer: Any = make_producer(
        settings.kafka, acks="all", enable_idempotence=True, compression_type="gzip"
    )
    try:
        numbers = producer.partitions_for(topic)
        if not numbers:
            raise ClusterError(
                f"topic {topic} does not exist. Start `tidemark collect` once, which creates it, or check topics.prefix."
            )
        sent = [
            producer.send(topic, value=record, partition=number)
            for record in records
            for number in sorted(numbers)
        ]
        deadline = time.monotonic() + SEND_SECONDS
        for future in sent:
            future.get(timeout=max(0.1, deadline - time.monotonic()))
    except kafka_errors.KafkaError as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ClusterError(
            f"cannot write to topic {topic}: {reason}. Nothing may have been closed: run it again."
        ) from None
    finally:
        producer.close(timeout=5)


def _confirm(log: TopicReader, alerts: Sequence[Alert], who: str, seconds: float) -> None:
    """Says what was sent, and of each alert whether the stream has closed it."""
    waiting = {alert.fingerprint: alert for alert in alerts}
    deadline = time.monotonic() + seconds
    while waiting and time.monotonic() < deadline:
        for found in alerts_in(values(log.fetch())):
            alert = waiting.get(found.fingerprint)
            if alert is not None and not is_open(found) and found.at >= alert.at:
                del waiting[found.fingerprint]
                click.echo(f"closed: {describe(alert)}, {found.reason or 'resolved'} by {who}.")
    for alert in waiting.values():
        click.echo(
            f"sent: {describe(alert)}, by {who}. The stream has not closed it yet; is `tidemark stream` running?"
        )
