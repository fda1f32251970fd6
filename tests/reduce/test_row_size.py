"""No row is larger than a record of Kafka's may be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reduce.test_hostile_events import OBSERVATION, PASS, fold, letters
from tidemark.core.events import MAX_BYTES, MAX_EVENTS, JmxFigures
from tidemark.core.records import Alert, OpenAlert, View, decode_record
from tidemark.kafka.topics import MAX_MESSAGE_BYTES
from tidemark.reduce.rows import (
    MAX_ROW_BYTES,
    RawRecord,
    Row,
    alert_row,
    fitting,
    tombstone,
    view_row,
)

NODES = 4096
RECORD = RawRecord(3, 7, 0.0, b"")
LABELS = {"alertname": "KafkaOffline", "kafka_cluster": "east", "severity": "critical"}
NOTES = {"description": "No leader."}
LARGE = {"samples": "x" * MAX_ROW_BYTES}
# Every counter that a controller may report, at its largest.
FIGURES = dict.fromkeys(set(JmxFigures.__struct_fields__) - {"is_active_controller"}, 2**31 - 1)


def open_alert(**changes: Any) -> OpenAlert:
    return OpenAlert(
        id="i", fingerprint="f", labels=LABELS, annotations=NOTES, starts_at=1.0, **changes
    )


def view(**changes: Any) -> View:
    return View(
        scope="cluster", kafka_cluster="east", at=1.0, pass_number=1, collector="c", **changes
    )


def decoded(row: Row) -> Any:
    assert row.value is not None
    return decode_record(row.value)


def test_the_largest_cluster_has_a_view_that_kafka_takes() -> None:
    """Valid events: all nodes that a state holds report JMX figures, none of them a broker."""
    states = [
        {
            "kind": "broker",
            "broker": 2**31 - NODES + number,
            "observed_at": 2.0,
            "metadata_lag_ms": 1e15,
            "metadata_log_end_offset": 2**63 - 1,
            "jmx": FIGURES,
        }
        for number in range(NODES)
    ]
    blob: bytes | None = None
    for first in range(0, NODES, MAX_EVENTS):
        blob, _ = fold(*states[first : first + MAX_EVENTS], blob=blob)
    _, rows = fold(OBSERVATION, PASS, blob=blob)
    sizes = [len(row.key) + len(row.value or b"") for row in rows]
    assert MAX_BYTES < max(sizes) <= MAX_ROW_BYTES < MAX_MESSAGE_BYTES
    (cluster,) = (decoded(row) for row in rows if row.key == b"east")
    assert (cluster.cut, cluster.jmx_of_nodes) == (["jmx_of_nodes"], {})
    assert (cluster.broker_outcomes, len(cluster.metadata_lag_ms)) == ({"1": "ok"}, NODES)
    assert letters(rows) == []


def test_what_fits_is_not_touched() -> None:
    rows = [view_row(view(alerts=[open_alert(evidence={"a": 1})])), tombstone("east/orders/0")]
    assert [fitting(row, RECORD) for row in rows] == rows


def test_of_a_view_evidence_goes_next_and_of_an_alert_first() -> None:
    cut = decoded(fitting(view_row(view(alerts=[open_alert(evidence=LARGE)])), RECORD))
    assert cut.cut == ["alerts.evidence"]
    assert cut.alerts == [open_alert(evidence={"cut": True})]
    alert = Alert(
        id="i",
        fingerprint="f",
        state="firing",
        labels=LABELS,
        annotations=NOTES,
        evidence=LARGE,
        starts_at=1.0,
        at=1.0,
    )
    assert decoded(fitting(alert_row(alert), RECORD)).evidence == {"cut": True}


def test_what_no_reader_takes_is_a_dead_letter() -> None:
    deep: Any = {}
    for _ in range(20):
        deep = {"a": deep}
    row = view_row(view(alerts=[open_alert(evidence={**LARGE, "deep": deep})]))
    (letter,) = letters([fitting(row, RECORD)])
    assert letter.reason == "more than 16 levels deep"


@pytest.mark.parametrize("key", [b"east", b"\xff"])
def test_what_no_rule_cuts_is_a_dead_letter_that_names_it(key: bytes) -> None:
    large = view_row(view(broker_outcomes={str(n): "o" * 64 for n in range(20_000)}))
    row = fitting(large._replace(key=key), RECORD)
    assert row.destination == "dead_letters"
    (letter,) = letters([row])
    assert (letter.partition, letter.offset) == (3, 7)
    name = key.decode(errors="replace")
    assert letter.reason.startswith(f"a row of partition_views with the key {name} has 1")
