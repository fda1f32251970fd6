from __future__ import annotations

from typing import Any

from kafka.errors import KafkaTimeoutError

from tidemark.kafka.topics import time_lines
from tidemark.verbs.check_config.rights import size_lines

CURE = (
    "  kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics "
    "--entity-name t.views --add-config max.message.bytes=1048588"
)


class Admin:
    """Answers an option by topic; an absent one is refused, as the client shows it."""

    def __init__(self, values: dict[str, str], option: str = "max.message.bytes") -> None:
        self.values, self.option, self.is_up = values, option, True

    def describe_configs(self, resources: Any, config_filter: str) -> Any:
        assert config_filter == "all"
        if not self.is_up:
            raise KafkaTimeoutError("no answer")
        (resource,) = resources
        found = self.values.get(resource.name)
        options = {} if found is None else {self.option: {"value": found}}
        return {"topic": {resource.name: options}}


def test_a_topic_that_takes_larger_records_is_named_with_its_cure() -> None:
    admin = Admin({"t.alerts": "1048588", "t.views": "10000000"})
    assert list(size_lines(admin, ["t.alerts", "t.views", "t.events"], ["kafka:9092"])) == [
        "risk: t.views takes records of up to 10,000,000 bytes (max.message.bytes); bound it:",
        CURE,
        "not known: max.message.bytes of t.events (DescribeConfigs on it shows it)",
    ]
    admin.is_up = False
    assert len(list(size_lines(admin, ["t.alerts"], ["kafka:9092"]))) == 1


def test_an_event_topic_whose_writers_choose_the_times_is_named_with_its_cure() -> None:
    admin = Admin({"old": "CreateTime", "new": "LogAppendTime"}, "message.timestamp.type")
    risk, cure = time_lines(admin, "old", ["kafka:9092"])
    assert risk.startswith("risk: who writes to old chooses the times of its records")
    assert cure.endswith("--entity-name old --add-config message.timestamp.type=LogAppendTime")
    assert list(time_lines(admin, "new", ["kafka:9092"])) == []
    assert list(time_lines(admin, "hidden", ["kafka:9092"])) == []
