"""The configuration of Tidemark's topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.conftest import ROOT
from tidemark.core.errors import ClusterError
from tidemark.kafka import client, topics
from tidemark.kafka.topics import topic_specifications
from tidemark.settings import Connection, Topics


def test_topic_specifications() -> None:
    made = topic_specifications(Topics(partitions=8, replication_factor=3, min_in_sync_replicas=2))
    assert {name: partitions for name, (partitions, _) in made.items()} == {
        "tidemark.replica-state": 8,
        "tidemark.partition-views": 8,
        "tidemark.alerts": 1,
        "tidemark.dead-letters": 1,
    }
    assert {configuration["min.insync.replicas"] for _, configuration in made.values()} == {"2"}
    events = made["tidemark.replica-state"][1]
    assert (events["retention.ms"], events["message.timestamp.type"]) == (
        "86400000",
        "LogAppendTime",
    )
    views = made["tidemark.partition-views"][1]
    assert (views["cleanup.policy"], views["segment.ms"], views["min.cleanable.dirty.ratio"]) == (
        "compact",
        "600000",
        "0.1",
    )
    assert made["tidemark.alerts"][1]["retention.ms"] == "604800000"


class Admin:
    """Topics by name -> their error code or number of partitions; creation as `refuses` says."""

    def __init__(self, topics: dict[str, int], refuses: int = 0, metadata: int = 12) -> None:
        self.metadata = metadata
        self.topics = topics
        self.refuses = refuses
        self.created: list[str] = []
        self.times = "LogAppendTime"
        self.closed = False

    def api_versions(self) -> dict[int, tuple[int, int]]:
        if self.metadata > 13:
            raise ValueError("93 is not a valid ApiKey")
        return {3: (0, self.metadata)}

    def describe_topics(self, names: list[str] | None = None) -> list[dict[str, Any]]:
        if names is None:
            names = [name for name, size in self.topics.items() if size > 0]
        else:
            assert self.metadata >= 4, "asked by name, such a broker creates a topic"
        return [
            {
                "name": name,
                "error_code": max(0, -self.topics.get(name, -UNKNOWN)),
                "partitions": [None] * max(0, self.topics.get(name, 0)),
            }
            for name in names
        ]

    def create_topics(self, request: dict[str, Any], *, raise_errors: bool) -> dict[str, Any]:
        assert not raise_errors
        self.created += request
        return {"topics": [{"name": name, "error_code": self.refuses} for name in request]}

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, Any]:
        assert (config_filter, [each.name for each in resources]) == ("all", [STATE])
        return {"topic": {STATE: {"message.timestamp.type": {"value": self.times}}}}

    def wait_for_topics(self, names: list[str]) -> None:
        assert names

    def close(self) -> None:
        self.closed = True


DENIED, UNKNOWN = 29, 3
STATE, VIEWS, ALERTS, DEAD = topic_specifications(Topics())


@pytest.fixture
def ensure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def run(admin: Admin, *needed: str) -> None:
        monkeypatch.setattr(client, "make_admin", lambda _: admin)
        topics.ensure_topics(Connection(), Topics(), needed or None)
        assert admin.closed

    return run


def test_missing_topics_are_created(ensure: Callable[..., None]) -> None:
    admin = Admin({STATE: 4})
    ensure(admin)
    assert admin.created == [VIEWS, ALERTS, DEAD]


def test_a_start_says_that_writers_choose_the_times_of_events(ensure: Callable[..., None]) -> None:
    admin = Admin({STATE: 4, VIEWS: 4, ALERTS: 1, DEAD: 1})
    with capture_logs() as logs:
        ensure(admin)
        admin.times = "CreateTime"
        ensure(admin)
    risk, cure = (str(entry["event"]) for entry in logs)
    assert risk.startswith(f"risk: who writes to {STATE} chooses the times of its records")
    assert cure.endswith("--add-config message.timestamp.type=LogAppendTime")


# By name, one before 0.11 would create them. Of 4.4, an API is not known to kafka-python.
@pytest.mark.parametrize("metadata", [2, 14])
def test_topics_are_created_by_their_request_alone(
    ensure: Callable[..., None], metadata: int
) -> None:
    admin = Admin({STATE: 4}, metadata=metadata)
    ensure(admin)
    assert admin.created == [VIEWS, ALERTS, DEAD]


def test_topics_of_other_verbs_need_no_right(ensure: Callable[..., None]) -> None:
    admin = Admin({STATE: 4, VIEWS: -DENIED, ALERTS: -DENIED, DEAD: -DENIED})
    ensure(admin, STATE)
    assert admin.created == []
    # It may describe, but not create.
    ensure(Admin({STATE: 4}, refuses=DENIED), STATE)


def test_not_permitted_is_told_from_not_there(ensure: Callable[..., None]) -> None:
    with pytest.raises(ClusterError, match=f"may not describe topic {STATE}"):
        ensure(Admin({STATE: -DENIED}), STATE)
    with pytest.raises(ClusterError, match=f"cannot create topic {STATE}: TopicAuthorization"):
        ensure(Admin({}, refuses=DENIED), STATE)
    for found, text in ((Admin({STATE: -DENIED}), "may not describe"), (Admin({}), "not exist")):
        assert text in absent(found)


def absent(admin: Admin) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "make_admin", lambda _: admin)
        return topics.absence(Connection(), STATE)


def test_another_number_of_partitions_is_not_waited_out(ensure: Callable[..., None]) -> None:
    with pytest.raises(topics.TopicMismatchError, match="has 8 partitions") as caught:
        ensure(Admin({STATE: 8, VIEWS: -DENIED}), STATE)
    assert "Set topics.partitions to 8 if the topic was created with that" in str(caught.value)
    assert topics.PROCEDURE in str(caught.value)


def test_partitions_that_were_added_to_the_alerts_are_named(ensure: Callable[..., None]) -> None:
    with pytest.raises(topics.TopicMismatchError, match=f"{ALERTS} has 3 .* exactly 1. Delete it"):
        ensure(Admin({STATE: 4, ALERTS: 3}))


def test_the_named_procedure_is_a_section_of_the_document() -> None:
    path, _, section = topics.PROCEDURE.partition(" of `tidemark assets`, ")
    assert f"\n## {section.strip(chr(34))}\n" in (ROOT / path).read_text(encoding="utf-8")
