from __future__ import annotations

from typing import Any

from kafka.errors import KafkaTimeoutError

from tidemark.verbs.check_config.rights import size_lines

CURE = (
    "  kafka-configs.sh --bootstrap-server kafka:9092 --alter --entity-type topics "
    "--entity-name t.views --add-config max.message.bytes=1048588"
)


class Admin:
    """Answers by topic; an absent one is refused, as the client shows it."""

    def __init__(self, sizes: dict[str, str]) -> None:
        self.sizes, self.is_up = sizes, True

    def describe_configs(self, resources: Any, config_filter: str) -> Any:
        assert config_filter == "all"
        if not self.is_up:
            raise KafkaTimeoutError("no answer")
        (resource,) = resources
        found = self.sizes.get(resource.name)
        options = {} if found is None else {"max.message.bytes": {"value": found}}
        return {"topic": {resource.name: options}}


def test_a_topic_that_takes_larger_records_is_named_with_its_cure() -> None:
    admin = Admin({"t.alerts": "1048588", "t.views": "10000000"})
    assert list(size_lines(admin, ["t.alerts", "t.views", "t.events"], "kafka:9092")) == [
        "risk: t.views takes records of up to 10,000,000 bytes (max.message.bytes); bound it:",
        CURE,
        "not known: max.message.bytes of t.events (DescribeConfigs on it shows it)",
    ]
    admin.is_up = False
    assert len(list(size_lines(admin, ["t.alerts"], "kafka:9092"))) == 1
