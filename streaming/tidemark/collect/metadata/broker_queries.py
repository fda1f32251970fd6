"""Queries that a broker answers about itself: its log directories and its configuration."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest
from kafka.protocol.metadata import ApiVersionsRequest

from tidemark.collect.codecs.errors import error_name
from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.codecs.topic_configuration import BOOLEANS
from tidemark.collect.connect.connection import BrokerConnection
from tidemark.collect.metadata.refusals import RefusedError
from tidemark.core.broker_report import (
    MAX_LOG_DIRECTORIES,
    MAX_PATH,
    BrokerConfiguration,
    LogDirectory,
)

BROKER_RESOURCE: Final = 4
INVALID_REQUEST: Final = 42
# With total and usable bytes.
LOG_DIRS_VERSION: Final = 4
# With cordoned directories.
CORDONED_VERSION: Final = 5
CONFIGS_VERSION: Final = 4
# With the features of the cluster (KIP-584), those too that may be off (KAFKA-17011): Kafka 3.9.
FEATURES_VERSION: Final = 4
_ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
# Kafka's default of a throttled rate, Long.MAX_VALUE: none is set.
NO_RATE: Final = 2**63 - 1
_THROTTLES: Final = {
    "leader": "leader.replication.throttled.rate",
    "follower": "follower.replication.throttled.rate",
}
_LAG_TIME: Final = "replica.lag.time.max.ms"
_FETCH_WAIT: Final = "replica.fetch.wait.max.ms"
_CHECKPOINT: Final = "replica.high.watermark.checkpoint.interval.ms"
_SELECTOR: Final = "replica.selector.class"
_UNCLEAN: Final = "unclean.leader.election.enable"
_MINIMUM: Final = "min.insync.replicas"
BROKER_OPTIONS: Final = (
    *(_LAG_TIME, _FETCH_WAIT, _CHECKPOINT, _SELECTOR, _UNCLEAN, _MINIMUM),
    *_THROTTLES.values(),
)


class LogDirectories(NamedTuple):
    """The directories of a broker, and the bytes of each replica's segments in them."""

    directories: list[LogDirectory]
    sizes: dict[TopicPartition, int]


async def read_log_directories(connection: BrokerConnection, seconds: float) -> LogDirectories:
    """Raises NoAnswerError and RefusedError."""
    if connection.version(DescribeLogDirsRequest.API_KEY, LOG_DIRS_VERSION) is None:
        raise RefusedError("UNSUPPORTED_VERSION")
    return decode_log_directories(
        await connection.ask(DescribeLogDirsRequest(topics=None), seconds)
    )


def decode_log_directories(answer: Any) -> LogDirectories:
    """Raises RefusedError. A size below 0 is not known.

    Before version 3, a broker answers without a directory where the right is missing.
    """
    results = answer.results or []
    if answer.error_code or not results:
        raise RefusedError(error_name(answer.error_code or 31))
    directories, sizes = [], {}
    for result in results[:MAX_LOG_DIRECTORIES]:
        if not result.log_dir:
            continue
        directories.append(
            LogDirectory(
                path=result.log_dir[:MAX_PATH],
                error=error_name(result.error_code)[:64] if result.error_code else None,
                total_bytes=_known(result.total_bytes),
                usable_bytes=_known(result.usable_bytes),
                cordoned=result.is_cordoned if answer.API_VERSION >= CORDONED_VERSION else None,
            )
        )
        for topic in result.topics or []:
            for partition in topic.partitions or []:
                # A future replica is a copy that is still being moved to this directory.
                if partition.partition_size >= 0 and not partition.is_future_key:
                    sizes[topic.name, partition.partition_index] = partition.partition_size
    return LogDirectories(sorted(directories, key=lambda directory: directory.path), sizes)


def _known(size: int | None) -> int | None:
    return None if size is None or size < 0 else size


async def read_broker_configuration(
    connection: BrokerConnection, broker: int, seconds: float
) -> BrokerConfiguration:
    """Only the broker itself answers. Raises NoAnswerError and RefusedError."""
    if connection.version(DescribeConfigsRequest.API_KEY, CONFIGS_VERSION) is None:
        raise RefusedError("UNSUPPORTED_VERSION")
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(broker),
        configuration_keys=list(BROKER_OPTIONS),
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=False, include_documentation=False
    )
    found = decode_broker_configuration(await connection.ask(request, seconds))
    if connection.version(ApiVersionsRequest.API_KEY, FEATURES_VERSION) == FEATURES_VERSION:
        asked = ApiVersionsRequest(client_software_name="tidemark", client_software_version="0")
        found.eligible_leader_replicas = decode_eligible_leaders(
            await connection.ask(asked, seconds)
        )
    return found


def decode_eligible_leaders(answer: Any) -> bool | None:
    """See `BrokerConfiguration.eligible_leader_replicas`. Null too where no controller is known."""
    supported = {feature.name for feature in answer.supported_features or []}
    if answer.error_code or _ELIGIBLE_LEADERS not in supported:
        return None
    if answer.finalized_features_epoch is None or answer.finalized_features_epoch < 0:
        return None
    # A feature of level 0 is left out.
    levels = {f.name: f.max_version_level for f in answer.finalized_features or []}
    return bool(levels.get(_ELIGIBLE_LEADERS, 0) > 0)


async def is_that_broker(connection: BrokerConnection, seconds: float) -> bool | None:
    """Whether the broker of the connection answers it: any other one refuses its number.

    None: that cannot be asked, before Kafka 0.11 or without DescribeConfigs on the cluster. Raises
    NoAnswerError.
    """
    if connection.version(DescribeConfigsRequest.API_KEY, CONFIGS_VERSION) is None:
        return None
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(connection.broker),
        configuration_keys=[_LAG_TIME],
    )
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=False, include_documentation=False
    )
    results = (await connection.ask(request, seconds)).results or []
    if not results or results[0].error_code not in (0, INVALID_REQUEST):
        return None
    return bool(results[0].error_code == 0)


def decode_broker_configuration(answer: Any) -> BrokerConfiguration:
    """Raises RefusedError. A value that is missing or malformed is not known."""
    results = answer.results or []
    if not results or results[0].error_code:
        raise RefusedError(error_name(results[0].error_code if results else -1))
    values = {option.name: option.value for option in results[0].configs or []}
    rates = {role: _number(values.get(option)) for role, option in _THROTTLES.items()}
    selector = values.get(_SELECTOR)
    return BrokerConfiguration(
        replica_lag_time_max_ms=_number(values.get(_LAG_TIME)),
        replica_fetch_wait_max_ms=_number(values.get(_FETCH_WAIT)),
        high_watermark_checkpoint_interval_ms=_number(values.get(_CHECKPOINT)),
        replica_selector_class=(selector or "")[:255] if _SELECTOR in values else None,
        unclean_leader_election=BOOLEANS.get((values.get(_UNCLEAN) or "").lower()),
        min_in_sync_replicas=_number(values.get(_MINIMUM), 2**31 - 1),
        # An answer with other options is not cut short: a rate that it leaves out is not set.
        replication_throttles={
            role: rate for role, rate in rates.items() if rate is not None and rate < NO_RATE
        }
        if values
        else None,
    )


def _number(value: str | None, highest: int = 2**63 - 1) -> int | None:
    if value is None or not value.isascii() or not value.isdecimal() or len(value) > 19:
        return None
    return int(value) if int(value) <= highest else None
