"""Records that another writer put on the topics: no record ends the exporter or a page.

tests/fuzz shows many of them.
"""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.pages.make import views
from tests.pages.markup import ask
from tidemark.core.errors import WireError
from tidemark.core.records import Alert, View, decode_record, encode_record
from tidemark.kafka.topic_reader import Message
from tidemark.settings import Receiver, Settings
from tidemark_exporters.export.counters import EventCounters
from tidemark_exporters.export.exposition import Renderer
from tidemark_exporters.export.own_metrics import ExportMetrics
from tidemark_exporters.export.table import Table
from tidemark_exporters.notify.delivery import Delivery, make_delivery
from tidemark_exporters.pages.responses import Pages
from tidemark_exporters.topic_records import RecordDecoder

VIEW = json.loads(encode_record(views()[0]))
ALERT = {**VIEW["alerts"][0], "type": "alert", "v": 1, "state": "firing", "at": VIEW["at"]}
DEEP = b'{"type":"view","evidence":' + b"[" * 200_000


class Clients:
    name = "receiver"

    def post(self, body: bytes, _message_id: str | None) -> None:
        json.loads(body)


def delivery() -> Delivery:
    chosen = Settings()
    chosen.notify.receivers = [Receiver(name="receiver", url="http://127.0.0.1:1/")]
    store = mock.Mock(load=dict, save=lambda _: True)
    return make_delivery(
        chosen, {"receiver": [Clients()]}, {0: 10}, lambda *_: store, lambda: VIEW["at"] + 60.0
    )


def show(data: bytes) -> None:
    """Everything that the exporter does with a record. Raises WireError where it is none."""
    record = decode_record(data)
    table, sender = Table(), delivery()
    table.live = True
    if isinstance(record, View):
        for _ in range(2):
            table.apply("key", record, data)
        sender.view(record)
    if isinstance(record, Alert):
        sender.alerts([(record, (0, 3))])
    Renderer(Settings().export).render(table, EventCounters(), VIEW["at"])
    sender.tick(dict(table.newest), table.open_alerts)
    for each in sender.senders:
        each.post_due(each.addresses[0])
    pages = Pages(table, 30.0, list, lambda: VIEW["at"])
    cluster = record.kafka_cluster if isinstance(record, View) else "east"
    place = {"cluster": cluster, "topic": "payments", "partition": 3}
    for path, parameters in (
        ("/", {}),
        ("/cluster", {"cluster": cluster}),
        ("/partitions", {}),
        ("/partition", place),
        ("/alerts", {}),
        ("/api/v1/partitions", {}),
        ("/api/v1/alerts", {}),
    ):
        assert ask(pages, path, **parameters).status < 500


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (DEEP, None),
        (b"\xff\xfe", None),
        (b'{"type":"view","scope":"partition"}', None),
        (b"", None),
        (b"null", None),
        (json.dumps({**VIEW, "topic": None}).encode(), "lacks topic or partition"),
    ],
    ids=["deep", "not UTF-8", "incomplete", "empty", "null", "no topic"],
)
def test_what_is_no_record_is_a_typed_error(data: bytes, text: str | None) -> None:
    with pytest.raises(WireError, match=text):
        decode_record(data)


def test_evidence_is_bounded() -> None:
    nested: Any = 1
    for _ in range(17):
        nested = [nested]
    for evidence in ({"a": 1e308}, {"a": nested}, {"a": {"b": [2**63]}}):
        with pytest.raises(WireError) as raised:
            decode_record(json.dumps({**ALERT, "evidence": evidence}).encode())
        assert raised.value.field == "$.evidence"


def test_a_record_that_fails_after_its_checks_is_skipped() -> None:
    metrics = ExportMetrics()
    failing = mock.Mock(side_effect=KeyError("x"))
    message = Message(0, 7, b"key", json.dumps(ALERT).encode())
    with capture_logs() as logged:
        assert RecordDecoder(metrics).take(message, "topic", failing) is None
    failing.assert_called_once()
    (entry,) = logged
    assert (entry["topic"], entry["offset"], entry["reason"]) == ("topic", 7, "'x'")
    assert 'undecodable_total{topic="topic"} 1' in metrics.registry.render().decode()
