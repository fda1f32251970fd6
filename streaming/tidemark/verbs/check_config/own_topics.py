"""Whether Tidemark's own topics bound the size of a record, for `tidemark check-config --reach`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType

from tidemark.kafka.topics import MAX_MESSAGE_BYTES

OPTION: Final = "max.message.bytes"


def size_lines(admin: Any, topics: Iterable[str], bootstrap: str) -> Iterator[str]:
    """A line and its cure for each topic that takes larger records than those that Tidemark makes.

    A compressed record of 10 MB may unpack to 10 GB.
    """
    for topic in topics:
        found = _max_message_bytes(admin, topic)
        if found is None:
            yield f"not known: {OPTION} of {topic} (DescribeConfigs on it shows it)"
        elif found > MAX_MESSAGE_BYTES:
            yield f"risk: {topic} takes records of up to {found:,} bytes ({OPTION}); bound it:"
            yield (
                f"  kafka-configs.sh --bootstrap-server {bootstrap} --alter --entity-type topics "
                f"--entity-name {topic} --add-config {OPTION}={MAX_MESSAGE_BYTES}"
            )


def _max_message_bytes(admin: Any, topic: str) -> int | None:
    """None where brokers do not say it, such as without the right."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {OPTION: None})
    try:
        answer = admin.describe_configs([resource], config_filter="all")
    except kafka_errors.KafkaError:
        return None
    value = answer.get("topic", {}).get(topic, {}).get(OPTION, {}).get("value")
    return int(value) if str(value).isdecimal() else None
