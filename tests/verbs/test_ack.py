"""`tidemark ack`: which alert is meant, what is sent, and that the reducer closes it once."""

from __future__ import annotations

from typing import Any, Self

import pytest

from tests.scenarios.scenario import Scenario
from tidemark.cli import main
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError
from tidemark.core.records import Alert, decode_record, encode_record
from tidemark.reduce.rows import RawRecord
from tidemark.verbs.ack import command
from tidemark.verbs.ack.choice import (
    ack_record,
    chosen_alerts,
    describe,
    newest_alerts,
    open_events,
)

Captured = pytest.CaptureFixture[str]
LOSS = (
    "partition orders-0 replicas=1,2,3 min_isr=2",
    "pass 3 add=10 lineage=0:30",
    "pass down=1:refused,3:refused leader=2 epoch=1 isr=2 leo=2:20 hw=20 lineage=0:20",
    "pass 3 lineage=0:20",
)


def world() -> Scenario:
    made = Scenario()
    for line in LOSS:
        made.run(line)
    return made


def of(made: Scenario, name: str) -> Alert:
    return next(alert for alert in made.alerts.values() if alert.labels["alertname"] == name)


def test_an_alert_is_found_by_fingerprint_its_beginning_id_or_incident() -> None:
    newest = newest_alerts(world().alerts.values())
    loss = of(world(), "KafkaCommittedDataLoss")
    for mark in (
        loss.fingerprint,
        loss.fingerprint[:8],
        f" {loss.fingerprint.upper()}",
        loss.id,
        loss.labels["incident"],
    ):
        assert [alert.fingerprint for alert in chosen_alerts(newest, mark)] == [loss.fingerprint]
    assert loss.fingerprint in [alert.fingerprint for alert in open_events(newest)]
    assert all("incident" in alert.labels for alert in open_events(newest))


def test_a_state_cannot_be_acknowledged_nor_what_is_not_there() -> None:
    newest = newest_alerts(world().alerts.values())
    state = next(alert for alert in newest.values() if "incident" not in alert.labels)
    with pytest.raises(ConfigError, match="is a state: it ends by itself"):
        chosen_alerts(newest, state.fingerprint)
    for mark in ("0000000000000000", state.fingerprint[:5], ""):
        with pytest.raises(ConfigError, match="no alert of the last 7 days"):
            chosen_alerts(newest, mark)
    twins = {key: of(world(), "KafkaCommittedDataLoss") for key in ("abcdef01", "abcdef02")}
    with pytest.raises(ConfigError, match="2 alerts begin with abcdef"):
        chosen_alerts(twins, "abcdef")


def test_the_reducer_closes_it_once() -> None:
    made = world()
    assert made.fold is not None
    loss = of(made, "KafkaCommittedDataLoss")
    record = ack_record(loss, "ada", "sent again from upstream", made.clock + 1)
    batch = decode_batch(record)
    (event,) = batch.events
    assert (batch.cluster, event.by, event.comment) == ("main", "ada", "sent again from upstream")  # type: ignore[union-attr]
    ended = []
    for offset in (900, 901):
        made.fold.record(RawRecord(0, offset, 0.0, record))
        ended.append(
            [
                r
                for row in made.fold.rows
                if isinstance(r := decode_record(row.value or b"{}"), Alert)
            ]
        )
        made.fold.rows.clear()
    assert [
        [(alert.fingerprint, alert.state, alert.reason) for alert in alerts] for alerts in ended
    ] == [
        [(loss.fingerprint, "resolved", "acked")],
        [],
    ]


def test_an_operators_clock_that_is_behind_still_ends_it_afterwards() -> None:
    loss = of(world(), "KafkaCommittedDataLoss")
    (event,) = decode_batch(ack_record(loss, "ada", None, loss.at - 3600)).events
    assert event.observed_at == loss.at  # type: ignore[union-attr]


class Log:
    """In place of the topic: what it holds, and what comes after."""

    def __init__(self, alerts: list[Alert]) -> None:
        self.alerts, self.later = alerts, list[bytes]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def to_end(self) -> list[bytes]:
        return [b"not a record", *map(encode_record, self.alerts)]

    def poll(self) -> list[bytes]:
        return self.later


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.delenv("TIDEMARK_CONFIG", raising=False)
    made = Log(list(world().alerts.values()))
    monkeypatch.setattr(command, "TopicLog", lambda *_: made)
    return made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    records: list[bytes] = []
    monkeypatch.setattr(command, "_send", lambda _, found: records.extend(found))
    return records


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["ack", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_without_a_name_the_open_events_are_listed(log: Log, capsys: Captured) -> None:
    assert run() == 0
    told = capsys.readouterr().out
    loss = of(world(), "KafkaCommittedDataLoss")
    assert f"{loss.fingerprint}  since 2023-11-14T22:13:2" in told
    assert "committed records of orders-0 are lost" in told
    log.alerts.clear()
    assert run() == 0
    assert capsys.readouterr().out == "no event alert is open.\n"


def test_it_sends_waits_and_says_that_it_was_closed(
    log: Log, sent: list[bytes], capsys: Captured
) -> None:
    loss = of(world(), "KafkaCommittedDataLoss")
    resolved = {"state": "resolved", "reason": "acked", "at": loss.at + 9, "ends_at": loss.at + 9}
    fields: dict[str, Any] = {name: getattr(loss, name) for name in loss.__struct_fields__}
    log.later = [encode_record(Alert(**{**fields, **resolved}))]
    assert run(loss.fingerprint, "--by", "ada", "--comment", "known") == 0
    assert capsys.readouterr().out == f"closed: {describe(loss)}, acked by ada.\n"
    (event,) = decode_batch(sent[0]).events
    assert (event.fingerprint, event.by, event.comment) == (loss.fingerprint, "ada", "known")  # type: ignore[union-attr]
    log.alerts += [
        decode for record in log.later if isinstance(decode := decode_record(record), Alert)
    ]
    assert run(loss.fingerprint) == 0
    assert "is closed already: acked at 2023-11-14T22:13:" in capsys.readouterr().out
    assert len(sent) == 1


def test_without_a_stream_it_says_that_nothing_was_closed_yet(
    log: Log, sent: list[bytes], capsys: Captured
) -> None:
    assert run(of(world(), "KafkaCommittedDataLoss").fingerprint, "--wait", "0") == 0
    assert (
        "The stream has not closed it yet; is `tidemark stream` running?" in capsys.readouterr().out
    )
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("feedfeedfeedfeed",), "no alert of the last 7 days"),
        (("x", "--by", "a" * 256), "--by has 256 characters; it may have 255"),
        (("x", "--comment", "a" * 1025), "--comment has 1025 characters; it may have 1024"),
        (("x", "--bootstrap", ""), "--bootstrap is empty"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: tuple[str, ...], told: str, log: Log, sent: list[bytes], capsys: Captured
) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.count("\n") == 1
    assert sent == []
