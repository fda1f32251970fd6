"""Sending salvaged records, to a producer that records what it gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import errors as kafka_errors

from tests.verbs.run import tidemark
from tests.verbs.salvage.logs import log, marker, save, sent, transactional
from tidemark.kafka.topics import TopicState
from tidemark.settings import Cluster
from tidemark.verbs.salvage import produce, run

FROM_TO = ("--from", "0", "--to", "13")


class Producer:
    def __init__(self, partitions: int = 2, refuse: int | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self.partitions, self._refuse = partitions, refuse

    def send(self, topic: str, **record: Any) -> Producer:
        self.sent.append({"topic": topic, **record})
        return self

    def get(self, timeout: float) -> None:
        if self._refuse is not None and len(self.sent) > self._refuse:
            self._refuse = None
            raise kafka_errors.MessageSizeTooLargeError("too large")

    def flush(self, timeout: float | None = None) -> None: ...

    def close(self, timeout: float) -> None: ...


Connect = Callable[..., Producer]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    def connected(**options: Any) -> Producer:
        found = Producer(**options)
        monkeypatch.setattr(produce, "make_producer", lambda *_, **__: found)
        monkeypatch.setattr(
            produce, "describe_topic", lambda *_: TopicState(found.partitions or None, denied=False)
        )
        cluster = Cluster(name="main", bootstrap_servers=["127.0.0.1:1"])
        monkeypatch.setattr(run, "live_cluster", lambda *_: cluster)
        return found

    return connected


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """Five records, an aborted transaction of two, an open one of two, and a committed one."""

    batches = [
        transactional(5, 1),
        marker(7, 1, commit=False),
        transactional(8, 2),
        transactional(10, 3),
    ]
    return str(save(tmp_path / "orders-1", [*log(5), *batches, marker(12, 3, commit=True)]))


def test_a_dry_run_sends_nothing_and_says_what_it_would(connect: Connect, saved: str) -> None:
    producer = connect()
    out = tidemark("salvage", saved, *FROM_TO, "--produce-to", "found").out.splitlines()
    assert producer.sent == []
    assert out[0] == "orders-1 [0, 13): 11 records found, all; 2 transaction markers."
    size = sum(len(sent(o).key or b"") + len(sent(o).value or b"") for o in [*range(5), 10, 11])
    assert out[-2:] == [
        f"  7 records, {size} bytes, to partition 1 of found",
        "Nothing was sent. Add --execute to send it.",
    ]


def test_records_are_sent_as_they_were_with_their_origin(connect: Connect, saved: str) -> None:
    producer = connect()
    arguments = ("salvage", saved, *FROM_TO, "--produce-to", "found", "--execute")
    assert "7 records sent to found and acknowledged" in tidemark(*arguments).out
    for got, offset in zip(producer.sent, [*range(5), 10, 11], strict=True):
        record = sent(offset)
        assert got["topic"] == "found"
        assert got["partition"] == 1
        assert (got["key"], got["value"]) == (record.key, record.value)
        assert got["timestamp_ms"] == record.timestamp_ms
        assert got["headers"] == [
            *record.headers,
            ("tidemark.origin.topic", b"orders"),
            ("tidemark.origin.partition", b"1"),
            ("tidemark.origin.offset", b"%d" % offset),
            ("tidemark.origin.leader_epoch", b"4"),
        ]


def test_open_transactions_only_when_asked_for(connect: Connect, saved: str) -> None:
    producer = connect()
    arguments = ("--produce-to", "found", "--execute", "--open-transactions")
    tidemark("salvage", saved, *FROM_TO, *arguments, "--to-partition", "0")
    assert [dict(got["headers"])["tidemark.origin.offset"] for got in producer.sent] == [
        b"%d" % offset for offset in (0, 1, 2, 3, 4, 8, 9, 10, 11)
    ]
    assert {got["partition"] for got in producer.sent} == {0}


@pytest.mark.parametrize(
    ("arguments", "partitions", "code", "text"),
    [
        (("--produce-to", "orders"), 2, 2, "add --to-original"),
        (("--produce-to", "found"), 1, 2, "found has 1 partition and no partition 1"),
        (("--produce-to", "found"), 0, 1, "topic found does not exist"),
    ],
)
def test_targets_that_are_refused(
    connect: Connect, saved: str, arguments: tuple[str, ...], partitions: int, code: int, text: str
) -> None:
    producer = connect(partitions=partitions)
    assert text in tidemark("salvage", saved, *FROM_TO, *arguments, "--execute", code=code).err
    assert producer.sent == []


def test_the_original_topic_has_to_be_asked_for_twice(connect: Connect, saved: str) -> None:
    producer = connect()
    arguments = ("--produce-to", "orders", "--to-original", "--execute")
    tidemark("salvage", saved, *FROM_TO, *arguments)
    assert len(producer.sent) == 7


def test_a_refused_record_is_named_and_ends_the_sending(
    connect: Connect, saved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MAX_PENDING", 0)
    connect(refuse=3)
    arguments = ("salvage", saved, *FROM_TO, "--produce-to", "found", "--execute")
    err = tidemark(*arguments, code=1).err
    assert "found did not take offset 3 of orders-1" in err
    assert "3 records before it are there" in err
