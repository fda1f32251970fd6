"""`tidemark ack`: the selection of alerts, the event that is sent, and what the reducer does."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.scenarios.scenario import Scenario
from tests.verbs.run import tidemark
from tidemark.core.alert_records import decode_alerts
from tidemark.core.codec import decode_batch
from tidemark.core.errors import ConfigError
from tidemark.core.records import Alert, encode_record
from tidemark.kafka.topic_reader import Message
from tidemark.reduce.rows import RawRecord
from tidemark.verbs.ack import command
from tidemark.verbs.ack.command import (
    ack_record,
    describe,
    newest_alerts,
    open_events,
    select_alerts,
)

run = partial(tidemark, "ack")
LOSS = (
    "partition orders-0 replicas=1,2,3 min_isr=2",
    "pass 3 add=10 lineage=0:30",
    "pass down=1:refused,3:refused leader=2 epoch=1 isr=2 leo=2:20 hw=20 lineage=0:20",
    "pass 3 lineage=0:20",
)


@pytest.fixture
def scenario() -> Scenario:
    made = Scenario()
    for line in LOSS:
        made.run(line)
    return made


@pytest.fixture
def loss(scenario: Scenario) -> Alert:
    alerts = scenario.alerts.values()
    (found,) = (each for each in alerts if each.labels["alertname"] == "KafkaCommittedDataLoss")
    return found


@pytest.fixture
def newest(scenario: Scenario) -> dict[str, Alert]:
    return newest_alerts(scenario.alerts.values())


def test_alerts_are_selected_by_fingerprint_prefix_id_or_incident(
    newest: dict[str, Alert], loss: Alert
) -> None:
    for selector in (
        loss.fingerprint,
        loss.fingerprint[:8],
        f" {loss.fingerprint.upper()}",
        loss.id,
        loss.labels["incident"],
    ):
        assert [alert.fingerprint for alert in select_alerts(newest, selector)] == [
            loss.fingerprint
        ]
    events = [alert.fingerprint for alert in open_events(newest)]
    for selector in ("orders-0", "orders/0", "orders 0", "main/orders-0"):
        assert {alert.fingerprint for alert in select_alerts(newest, selector)} == set(events)
    elsewhere = msgspec.structs.replace(loss, labels=loss.labels | {"kafka_cluster": "west"})
    with pytest.raises(ConfigError, match="in several clusters; write main/orders-0"):
        select_alerts({**newest, "0": elsewhere}, "orders-0")
    assert loss.fingerprint in [alert.fingerprint for alert in open_events(newest)]
    assert all("incident" in alert.labels for alert in open_events(newest))


def test_alerts_about_states_and_unknown_alerts_are_refused(
    newest: dict[str, Alert], loss: Alert
) -> None:
    state = next(alert for alert in newest.values() if "incident" not in alert.labels)
    with pytest.raises(ConfigError, match="is about a state: it resolves when"):
        select_alerts(newest, state.fingerprint)
    for selector in ("0000000000000000", state.fingerprint[:5], ""):
        with pytest.raises(ConfigError, match="no alert of the last 7 days"):
            select_alerts(newest, selector)
    twins = dict.fromkeys(("abcdef01", "abcdef02"), loss)
    with pytest.raises(ConfigError, match="2 alerts begin with abcdef"):
        select_alerts(twins, "abcdef")


def test_the_reducer_closes_an_alert_once(scenario: Scenario, loss: Alert) -> None:
    assert scenario.fold is not None
    record = ack_record(loss, "ada", "sent again from upstream", scenario.clock + 1)
    batch = decode_batch(record)
    (event,) = batch.events
    assert (batch.cluster, event.by, event.comment) == ("main", "ada", "sent again from upstream")  # type: ignore[union-attr]
    ended = []
    for offset in (900, 901):
        scenario.fold.record(RawRecord(0, offset, 0.0, record))
        alerts = decode_alerts(row.value or b"" for row in scenario.fold.rows)
        ended.append([(alert.fingerprint, alert.state, alert.reason) for alert in alerts])
        scenario.fold.rows.clear()
    assert ended == [[(loss.fingerprint, "resolved", "acked")], []]


def test_an_operators_clock_that_is_behind_does_not_end_an_alert_before_its_start(
    loss: Alert,
) -> None:
    (event,) = decode_batch(ack_record(loss, "ada", None, loss.at - 3600)).events
    assert event.observed_at == loss.at  # type: ignore[union-attr]


class Log:
    """Replaces the topic: the alerts that it holds, and the records that follow."""

    def __init__(self, alerts: list[Alert]) -> None:
        self.alerts, self.later = alerts, list[bytes]()

    def read_to_end(self) -> list[Message]:
        return messages(b"not a record", *map(encode_record, self.alerts))

    def fetch(self) -> list[Message]:
        return messages(*self.later)


def messages(*values: bytes) -> list[Message]:
    return [Message(0, offset, None, value) for offset, value in enumerate(values)]


@pytest.fixture
def log(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log(list(scenario.alerts.values()))
    monkeypatch.setattr(command, "TopicReader", lambda *_: nullcontext(made))
    return made


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    records: list[bytes] = []
    monkeypatch.setattr(command, "_send", lambda _, found: records.extend(found))
    return records


def test_without_an_argument_open_events_are_listed(log: Log, loss: Alert) -> None:
    out = run().out
    assert f"{loss.fingerprint}  2023-11-14 22:13:2" in out
    assert "committed records of orders-0 are lost" in out
    log.alerts.clear()
    assert run().out == "no event alert is open.\n"


def test_ack_sends_waits_and_confirms(log: Log, loss: Alert, sent: list[bytes]) -> None:
    resolved = {"state": "resolved", "reason": "acked", "at": loss.at + 9, "ends_at": loss.at + 9}
    fields: dict[str, Any] = {name: getattr(loss, name) for name in loss.__struct_fields__}
    log.later = [encode_record(Alert(**{**fields, **resolved}))]
    assert run(loss.fingerprint, "--by", "ada", "--comment", "known").out == (
        f"closed: {describe(loss)}, acked by ada.\n"
    )
    (event,) = decode_batch(sent[0]).events
    assert (event.fingerprint, event.by, event.comment) == (loss.fingerprint, "ada", "known")  # type: ignore[union-attr]
    log.alerts += decode_alerts(log.later)
    assert "is already closed: acked at 2023-11-14T22:13:" in run(loss.fingerprint).out
    assert len(sent) == 1


def test_json_has_alert_records(log: Log, loss: Alert, sent: list[bytes]) -> None:
    listed = json.loads(run("--json").out)["open"]
    assert loss.fingerprint in [each["fingerprint"] for each in listed]
    done = json.loads(run(loss.fingerprint, "--by", "ada", "--wait", "0", "--json").out)
    assert [each["fingerprint"] for each in done.pop("sent")] == [loss.fingerprint]
    assert done == {"by": "ada", "closed": [], "already_closed": []}
    assert len(sent) == 1


@pytest.mark.usefixtures("log")
def test_without_a_stream_ack_reports_that_nothing_is_closed(
    loss: Alert, sent: list[bytes]
) -> None:
    out = run(loss.fingerprint, "--wait", "0").out
    assert "The stream has not closed it yet; is `tidemark stream` running?" in out
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("feedfeedfeedfeed",), "no alert of the last 7 days"),
        (("x", "--by", "a" * 256), "--by has 256 characters; the maximum is 255"),
        (("x", "--comment", "a" * 1025), "--comment has 1025 characters; the maximum is 1024"),
        (("x", "--bootstrap", ""), "--bootstrap is empty"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: tuple[str, ...], message: str, log: Log, sent: list[bytes]
) -> None:
    captured = run(*arguments, code=2)
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert sent == []
