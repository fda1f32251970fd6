"""`tidemark inspect --losses`: one line per loss, in any order of its records."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp

from tests.verbs.recordings import recording, trace, write
from tests.verbs.run import tidemark
from tidemark.assess.losses import LossFilter, read_losses
from tidemark.command_line.options import parse_since
from tidemark.command_line.places import partition_of
from tidemark.core.errors import ConfigError
from tidemark.core.records import Alert, AlertState, encode_record
from tidemark.observations import loss_groups as groups
from tidemark.verbs.inspect.losses import COLUMNS, as_csv

run = partial(tidemark, "inspect")


def alert(
    state: AlertState = "firing",
    at: float = 100.0,
    incident: str = "0a1b2c3d",
    topic: str = "orders",
    **changed: Any,
) -> Alert:
    labels = {
        "kafka_cluster": "main",
        "alertname": changed.pop("alertname", "KafkaCommittedDataLoss"),
        "severity": "critical",
        "topic": topic,
        "partition": changed.pop("partition", "3"),
        "broker": "2",
        "incident": incident,
    }
    evidence = {
        "proven": [5, 12],
        "exposed": [12, 14],
        "written_between": [90.0, 91.5],
        "confidence": "proven",
    }
    return Alert(
        id=f"f.{at}.{state}",
        fingerprint=f"f{incident}",
        state=state,
        labels=labels,
        annotations={"description": "d"},
        evidence={**evidence, **changed.pop("evidence", {})},
        starts_at=min(at, 100.0),
        at=at,
        **changed,
    )


def test_the_newest_record_of_a_loss_counts_in_any_order() -> None:
    fired = alert()
    wider = alert("update", 110.0, evidence={"proven": [4, 12]})
    acked = alert("resolved", 120.0, evidence={"proven": [4, 12]}, reason="acked", ends_at=120.0)
    for records in (
        [fired, wider, acked],
        [acked, fired, wider],
        [fired, acked, wider, fired, acked],
    ):
        (loss,) = read_losses(records)
        assert (loss.start, loss.end, loss.state) == (4, 12, "acked")
    (loss,) = read_losses([wider, fired])
    assert (loss.start, loss.state, loss.found_at) == (4, "open", "1970-01-01T00:01:40.000Z")


def test_losses_are_sorted_by_place_and_filtered() -> None:
    losses = read_losses(
        [
            alert(incident="b"),
            alert(topic="a"),
            alert(partition="20"),
            alert(),
            alert(alertname="KafkaLogTruncation"),
        ]
    )
    assert [(loss.topic, loss.partition) for loss in losses] == [
        ("a", 3),
        ("orders", 3),
        ("orders", 3),
        ("orders", 20),
    ]
    assert len({loss.incident for loss in losses}) == 2
    place = partition_of("orders 3")
    assert sum(map(LossFilter(place.covers, "main", 100.0).matches, losses)) == 2
    assert not any(map(LossFilter(place.covers, "other").matches, losses))
    assert not any(map(LossFilter(found_since=100.5).matches, losses))


@pytest.mark.parametrize(
    "evidence",
    [
        {"proven": None},
        {"proven": [12, 5]},
        {"proven": ["5", 12]},
        {"proven": [5]},
        {"proven": {"from": 5}},
        {"proven": [-1, 4]},
    ],
)
def test_alerts_without_a_valid_range_are_ignored(evidence: dict[str, Any]) -> None:
    assert read_losses([alert(evidence=evidence)]) == []
    assert read_losses([alert(partition="x")]) == []


def test_csv_begins_with_the_documented_columns_and_leaves_unknown_values_empty() -> None:
    losses = read_losses(
        [alert(), alert(topic="z", evidence={"written_between": [None, 1e300], "exposed": None})]
    )
    heading, known, unknown = csv.reader(io.StringIO(as_csv(losses)))
    assert (
        tuple(heading)
        == COLUMNS
        == (
            *("cluster", "topic", "partition", "from", "to", "from_time", "to_time"),
            *("exposed_from", "exposed_to", "confidence", "state", "found_at", "incident"),
            *("fingerprint", "leader_epoch_before", "leader_epoch_after"),
            "leader_before",
        )
    )
    assert known[:9] == [
        "main",
        "orders",
        "3",
        "5",
        "12",
        "1970-01-01T00:01:30.000Z",
        "1970-01-01T00:01:31.500Z",
        "12",
        "14",
    ]
    assert unknown[:9] == ["main", "z", "3", "5", "12", "", "", "", ""]
    assert msgspec.to_builtins(losses[1]) == dict(
        zip(heading, [None if v == "" else v for v in unknown], strict=True)
    ) | {
        "partition": 3,
        "from": 5,
        "to": 12,
    }
    assert as_csv([]).count("\n") == 1


def test_since_is_an_age_or_a_time() -> None:
    assert parse_since("90m", 10_000.0) == 4_600.0
    assert (
        parse_since("1970-01-02", 0.0) == parse_since("1970-01-02T01:00:00+01:00", 0.0) == 86_400.0
    )
    for text in ("yesterday", "9x", "24 h", ""):
        with pytest.raises(ConfigError, match="--since"):
            parse_since(text, 0.0)


def test_losses_in_a_recording(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", trace("unclean"))
    (row,) = csv.DictReader(io.StringIO(run("--losses", "--csv", "--from", path, code=3).out))
    assert (row["topic"], row["from"], row["to"], row["state"]) == ("trace", "5", "12", "open")
    assert "2001-09-09T01:46:4" in row["from_time"] < row["to_time"]
    out = run("--losses", "--from", path, code=3).out
    assert "[5, 12)" in out
    assert "7 committed records lost in 1 range." in out
    assert run("--losses", "trace", "1", "--from", path).out == (
        "no committed record is known to be lost there; other losses: trace/trace-0.\n"
    )


def test_without_losses_the_exit_code_is_0(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", recording("partition t-0 replicas=1,2,3", "pass 5 add=3"))
    assert run("--losses", "--from", path).out == "no committed record is known to be lost.\n"
    assert run("--losses", "--json", "--from", path).out == ""


def test_alert_records_and_unreadable_lines_of_a_file(tmp_path: Path) -> None:
    resolved = encode_record(alert("resolved", 120.0, reason="expired", ends_at=120.0))
    wrong = encode_record(alert(topic="b")).replace(b'"at":100.0', b'"at":"noon"')
    path = write(
        tmp_path / "a.jsonl",
        [encode_record(alert()), wrong, b'{"type":"al', resolved, encode_record(alert(topic="c"))],
    )
    captured = run("--losses", "--json", "--from", path, code=3)
    losses = [json.loads(line) for line in captured.out.splitlines()]
    assert [(loss["topic"], loss["state"]) for loss in losses] == [
        ("c", "open"),
        ("orders", "expired"),
    ]
    assert [line.split(":")[1].strip() for line in captured.err.splitlines()] == [
        f"unreadable  {path} line {number}" for number in (2, 3)
    ]


# `tidemark inspect --losses --groups`: what commits say, and what they do not.


PLACE = TopicPartition("orders", 3)
# The loss is [5, 12): epoch 4 was lost, 5 leads. Commits: offset, leader epoch.
COMMITS = {
    "all": (14, 4),
    "inside": (8, 4),
    "older": (9, 2),
    "silent": (12, -1),
    "between": (12, 6),
    "later": (13, 9),
    "behind": (5, 4),
    "none": (-1, -1),
}
SAYS = {
    "all": (
        "read",
        "read lost records up to offset 13, by the epoch of that one (4): all of [5, 12)",
    ),
    "inside": ("read", "up to offset 7, by the epoch of that one (4): all of [5, 8), unless"),
    "older": ("read", "up to offset 8, by the epoch of that one (2): all of [5, 9), unless"),
    "silent": ("may_have_read", "the commit has no leader epoch"),
    "between": ("may_have_read", "it is not known which leader had epoch 6"),
    "later": ("after_loss", "whether it read lost records before is not known"),
    "behind": ("before", "its commit covers none of the lost records"),
    "shared": ("share", "its position is in __share_group_state"),
    "secret": ("unknown", "--bootstrap-server $BOOTSTRAP --describe --group secret"),
}


class Admin:
    """Replaces kafka-python's: the groups above, one that shares, and one that may not be read."""

    def __init__(self, end: int | None = 13, error: type[Exception] | None = None) -> None:
        self.end, self.error = end, error

    def list_groups(self) -> list[dict[str, str]]:
        if self.error is not None:
            raise self.error()
        names = [*COMMITS, "secret"]
        return [{"group_id": name, "group_type": "Classic"} for name in names] + [
            {"group_id": "shared", "group_type": "share"}
        ]

    def list_group_offsets(self, asked: dict[str, list[TopicPartition]]) -> dict[str, Any]:
        ((group, places),) = asked.items()
        assert places == [PLACE]
        if group == "secret":
            raise kafka_errors.GroupAuthorizationFailedError
        offset, epoch = COMMITS[group]
        return {group: {PLACE: OffsetAndMetadata(offset, "", epoch)}}

    def list_partition_offsets(self, _asked: Any) -> dict[TopicPartition, OffsetAndTimestamp]:
        if self.end is None:
            raise kafka_errors.LeaderNotAvailableError
        return {PLACE: OffsetAndTimestamp(self.end, -1, 9)}

    def close(self) -> None:
        pass


@pytest.fixture
def recorded(tmp_path: Path) -> list[str]:
    lost = alert(evidence={"leader_epoch_before": 4, "leader_epoch_after": 7})
    path = tmp_path / "alerts.jsonl"
    path.write_bytes(encode_record(lost) + b"\n")
    return ["--losses", "--groups", "--from", str(path)]


def shown(recorded: list[str], admin: Admin, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(groups, "make_admin", lambda _connection: admin)
    (line,) = run(*recorded, "--bootstrap", "k:1", "--json", code=3).out.splitlines()
    return {each["group"]: each for each in json.loads(line)["groups"]}


def test_each_commit_says_no_more_than_its_leader_epoch_proves(
    recorded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shown(recorded, Admin(), monkeypatch)
    assert found.keys() == SAYS.keys(), "a group without a commit there is left out"
    for group, (standing, text) in SAYS.items():
        assert found[group]["standing"] == standing
        assert text in found[group]["text"]
        assert " will " not in found[group]["text"]
    assert "the log ends at 13" in found["all"]["text"]
    assert "may skip the new records [5, 8)" in found["inside"]["text"]
    table = run(*recorded, "--bootstrap", "k:1", code=3).out
    assert table.index("  all ") < table.index("  silent ") < table.index("  behind ")
    without_end = shown(recorded, Admin(end=None), monkeypatch)
    assert "may skip the new records [5, 14)" in without_end["all"]["text"]


def test_what_cannot_be_asked_is_said(recorded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Admin(error=kafka_errors.ClusterAuthorizationFailedError)
    (unknown,) = shown(recorded, refused, monkeypatch).values()
    assert unknown["standing"] == "unknown"
    assert "this needs Describe on Groups" in unknown["text"]
    assert "cluster main is not in the configuration; add it" in run(*recorded, code=3).out
