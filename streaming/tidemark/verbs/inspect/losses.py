"""What was lost, from alert records: one entry per loss, with what is needed to send the records again from upstream."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from tidemark.core.errors import ConfigError
from tidemark.core.identity import alert_name
from tidemark.core.records import Alert

LOSS: Final = alert_name("COMMITTED_DATA_LOSS")
# The columns that scripts rely on, in this order; further ones may follow them.
COLUMNS: Final = ("cluster", "topic", "partition", "from", "to", "from_time", "to_time")
MORE_COLUMNS: Final = (
    "exposed_from",
    "exposed_to",
    "confidence",
    "state",
    "found_at",
    "incident",
    "fingerprint",
)
_TABLE: Final = (
    "cluster",
    "topic",
    "partition",
    "lost",
    "records",
    "written between",
    "exposed",
    "confidence",
    "state",
    "found",
    "fingerprint",
)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_ORDER: Final = {"firing": 0, "update": 1, "resolved": 2}


class Loss(NamedTuple):
    """Offsets [start, end) that were committed and are gone. Times are Unix seconds; null is not known."""

    cluster: str
    topic: str
    partition: int
    start: int
    end: int
    # Nothing of the range was written before the one and all of it by the other.
    start_at: float | None
    end_at: float | None
    # [from, to) above the range, that producers with acks=1 may have been promised.
    exposed: tuple[int, int] | None
    confidence: str
    # open, or why the alert ended: acked, expired, deleted, …
    state: str
    found_at: float
    incident: str
    fingerprint: str


def losses_of(alerts: Iterable[Alert]) -> list[Loss]:
    """The newest record of each loss, whatever became of its alert, by cluster, topic, partition and time.

    Records come at least once and in any order; what is no loss, or names no range, is passed over.
    """
    newest: dict[tuple[str, ...], Alert] = {}
    for alert in alerts:
        if alert.labels.get("alertname") != LOSS:
            continue
        key = tuple(
            alert.labels.get(name, "")
            for name in ("kafka_cluster", "topic", "partition", "incident")
        )
        known = newest.get(key)
        if known is None or (known.at, _ORDER[known.state]) <= (alert.at, _ORDER[alert.state]):
            newest[key] = alert
    found = [loss for alert in newest.values() if (loss := _loss(alert)) is not None]
    return sorted(
        found,
        key=lambda loss: (loss.cluster, loss.topic, loss.partition, loss.found_at, loss.start),
    )


def _loss(alert: Alert) -> Loss | None:
    labels, evidence = alert.labels, alert.evidence
    proven = _range(evidence.get("proven"))
    if proven is None or not labels.get("partition", "").isdecimal():
        return None
    written = evidence.get("written_between")
    start_at, end_at = written if isinstance(written, list) and len(written) == 2 else (None, None)
    return Loss(
        cluster=labels.get("kafka_cluster", ""),
        topic=labels.get("topic", ""),
        partition=int(labels["partition"]),
        start=proven[0],
        end=proven[1],
        start_at=_time(start_at),
        end_at=_time(end_at),
        exposed=_range(evidence.get("exposed")),
        confidence=str(evidence.get("confidence", "")),
        state="open" if alert.state != "resolved" else alert.reason or "resolved",
        found_at=_time(alert.starts_at) or 0.0,
        incident=labels.get("incident", ""),
        fingerprint=alert.fingerprint,
    )


def chosen(
    losses: Iterable[Loss],
    topic: str | None,
    partition: int | None,
    cluster: str | None,
    since: float | None,
) -> list[Loss]:
    """Those that a topic, a partition, a cluster and a time of finding select; null selects all."""
    return [
        loss
        for loss in losses
        if topic in (None, loss.topic)
        and partition in (None, loss.partition)
        and cluster in (None, loss.cluster)
        and (since is None or loss.found_at >= since)
    ]


def since_time(text: str, now: float) -> float:
    """Unix seconds of `24h`, `90m`, `7d`, or of an ISO 8601 time (UTC where it names no zone). Raises ConfigError."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", text)
    try:
        if match is not None:
            return now - timedelta(**{_UNITS[match[2]]: int(match[1])}).total_seconds()
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"--since {text}: write how long ago (90m, 24h, 7d) or a time (2026-11-21T14:00:00Z)."
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def as_csv(losses: Sequence[Loss]) -> str:
    """A heading and one line a loss; `from` is lost, `to` is the first offset that is not. Unknown is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS + MORE_COLUMNS)
    for loss in losses:
        writer.writerow(["" if value is None else value for value in document(loss).values()])
    return out.getvalue()


def as_json(loss: Loss) -> bytes:
    """One loss as an object with the columns as its keys; unknown is null."""
    return msgspec.json.encode(document(loss))


def document(loss: Loss) -> dict[str, Any]:
    """The columns by name; times in ISO 8601, UTC."""
    exposed = loss.exposed or (None, None)
    values = (
        *loss[:5], iso(loss.start_at), iso(loss.end_at),
        *exposed, loss.confidence, loss.state, iso(loss.found_at), loss.incident, loss.fingerprint,
    )  # fmt: skip
    return dict(zip(COLUMNS + MORE_COLUMNS, values, strict=True))


def as_table(losses: Sequence[Loss]) -> list[str]:
    """Aligned columns under a heading."""
    rows = [tuple(name.upper() for name in _TABLE), *(_row(loss) for loss in losses)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TABLE))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def iso(seconds: float | None) -> str | None:
    """2026-11-21T14:00:00.000Z."""
    return (
        None
        if seconds is None
        else datetime.fromtimestamp(seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def _row(loss: Loss) -> tuple[str, ...]:
    exposed = "?" if loss.exposed is None else f"[{loss.exposed[0]}, {loss.exposed[1]})"
    written = f"{iso(loss.start_at) or '?'} … {iso(loss.end_at) or '?'}"
    return (
        loss.cluster, loss.topic, str(loss.partition), f"[{loss.start}, {loss.end})", str(loss.end - loss.start), written, exposed,
        loss.confidence, loss.state, str(iso(loss.found_at)), loss.fingerprint,
    )  # fmt: skip


def _range(value: Any) -> tuple[int, int] | None:
    if (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(offset, int) for offset in value)
        and 0 <= value[0] < value[1]
    ):
        return value[0], value[1]
    return None


def _time(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e11 else None
