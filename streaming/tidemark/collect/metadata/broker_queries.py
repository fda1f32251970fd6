"""Queries that a broker answers about itself: its log directories and its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from tidemark.collect.codecs.errors import error_name
from tidemark.collect.codecs.metadata_image import TopicPartition
from tidemark.collect.codecs.topic_configuration import BOOLEANS
from tidemark.collect.codecs.wire import API_VERSIONS, INT16, INT32, RawRequest, encode_string
from tidemark.collect.connect.connection import BrokerConnection
from tidemark.collect.metadata.refusals import RefusedError
from tidemark.core.broker_outcome_texts import NOT_CHECKED
from tidemark.core.broker_report import (
    MAX_LOG_DIRECTORIES,
    MAX_PATH,
    BrokerConfiguration,
    LogDirectory,
)
from tidemark.core.events import CONTROLLER_LISTENER, OK, OTHER_BROKER

BROKER_RESOURCE: Final = 4
INVALID_REQUEST: Final = 42
REBOOTSTRAP_REQUIRED: Final = 129
# Of ApiVersions: with the cluster and the node that the client means.
NODE_VERSION: Final = 5
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


def _check_offered(connection: BrokerConnection, api_key: int, version: int) -> None:
    """Raises RefusedError. Of a closed connection it is not known: the request tells."""
    if connection.connected and connection.version(api_key, version) is None:
        raise RefusedError("UNSUPPORTED_VERSION")


async def read_log_directories(connection: BrokerConnection, seconds: float) -> LogDirectories:
    """Raises NoAnswerError and RefusedError."""
    _check_offered(connection, DescribeLogDirsRequest.API_KEY, LOG_DIRS_VERSION)
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
    _check_offered(connection, DescribeConfigsRequest.API_KEY, CONFIGS_VERSION)
    request = _options_request(broker, BROKER_OPTIONS)
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


def _options_request(broker: int, options: Sequence[str]) -> DescribeConfigsRequest:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER_RESOURCE,
        resource_name=str(broker),
        configuration_keys=list(options),
    )
    return DescribeConfigsRequest(
        resources=[resource], include_synonyms=False, include_documentation=False
    )


async def identify(
    connection: BrokerConnection, seconds: float, cluster_id: str | None = None
) -> str:
    """Who answers, as `connection.Identify`. Raises NoAnswerError.

    Since Kafka 4.4, ApiVersions tells whether it is that broker of that cluster (KIP-1242). Else a
    broker refuses to give the options of another one, which cannot be asked before Kafka 0.11,
    without DescribeConfigs on the cluster, and of a bootstrap server, whose number is not known.
    """
    if connection.version(MetadataRequest.API_KEY, 0) is None:
        return CONTROLLER_LISTENER
    if cluster_id and connection.version(API_VERSIONS, NODE_VERSION) == NODE_VERSION:
        # The name and the version of the client come first, tagged fields last.
        texts = b"".join(
            encode_string(each, compact=True) for each in ("tidemark", "1", cluster_id)
        )
        meant = texts + INT32.pack(connection.broker) + b"\x00"
        request = RawRequest(API_VERSIONS, NODE_VERSION, meant, flexible=True)
        (error,) = INT16.unpack_from((await connection.ask(request, seconds)).body)
        if error in (0, REBOOTSTRAP_REQUIRED):
            return OTHER_BROKER if error else OK
    version = connection.version(DescribeConfigsRequest.API_KEY, CONFIGS_VERSION)
    if version is None or connection.broker < 0:
        return NOT_CHECKED
    request = _options_request(connection.broker, [_LAG_TIME])
    results = (await connection.ask(request, seconds)).results or []
    if not results or results[0].error_code not in (0, INVALID_REQUEST):
        return NOT_CHECKED
    return OTHER_BROKER if results[0].error_code else OK


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
