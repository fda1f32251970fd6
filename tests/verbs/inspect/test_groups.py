"""`tidemark inspect --losses --groups`: what commits say, and what they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition
from kafka import errors as kafka_errors
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp

from tests.verbs.inspect.test_losses import alert, run
from tidemark.core.records import encode_record
from tidemark.observations import loss_groups as groups

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
