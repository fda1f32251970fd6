"""What a broker reports of itself: decoded answers, and nonsense."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace as Answer
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeConfigsResponse, DescribeLogDirsResponse
from kafka.protocol.metadata import ApiVersionsResponse

from tidemark.collect.codecs.topic_configuration import ALL_REPLICAS, decode_throttled
from tidemark.collect.metadata.broker_queries import (
    BROKER_OPTIONS,
    LogDirectories,
    decode_broker_configuration,
    decode_eligible_leaders,
    decode_log_directories,
)
from tidemark.collect.metadata.broker_reports import BrokerReport
from tidemark.collect.metadata.refusals import RefusedError
from tidemark.core.broker_report import BrokerConfiguration, LogDirectory
from tidemark.core.codec import decode_batch
from tidemark.core.events import Batch, BrokerState

ELIGIBLE = "eligible.leader.replicas.version"


def replica(partition: int, size: int, *, future: bool = False) -> Any:
    return Answer(partition_index=partition, partition_size=size, is_future_key=future)


def directory(path: str, topics: dict[str, list[Any]], error: int = 0, free: int = 5) -> Any:
    named = [Answer(name=name, partitions=replicas) for name, replicas in topics.items()]
    return Answer(
        error_code=error, log_dir=path, topics=named, total_bytes=10 if free else -1,
        usable_bytes=free or -1,
    )  # fmt: skip


def options(values: dict[str, str | None], error: int = 0) -> Any:
    found = [Answer(name=name, value=value) for name, value in values.items()]
    return Answer(results=[Answer(error_code=error, configs=found)])


def test_log_directories_have_errors_space_and_the_sizes_of_replicas() -> None:
    answer = Answer(
        API_VERSION=4,
        error_code=0,
        results=[
            directory("/b", {}, error=56, free=0),
            directory("/a", {"t": [replica(0, 7), replica(1, -1), replica(2, 9, future=True)]}),
        ],
    )
    found = decode_log_directories(answer)
    assert found.directories == [
        LogDirectory(path="/a", total_bytes=10, usable_bytes=5),
        LogDirectory(path="/b", error="KAFKA_STORAGE_ERROR"),
    ]
    assert found.sizes == {("t", 0): 7}
    event = BrokerReport(3, 0.0, found, None).event(1.0)
    assert (event.offline_log_dirs, event.configuration) == (1, None)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(31, "CLUSTER_AUTHORIZATION_FAILED"), (0, "CLUSTER_AUTHORIZATION_FAILED")],
)
def test_a_broker_without_any_directory_has_refused(error: int, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        decode_log_directories(Answer(error_code=error, results=[]))


def test_a_configuration_has_what_is_set_and_what_is_not() -> None:
    values: dict[str, str | None] = {
        "replica.lag.time.max.ms": "30000",
        "replica.selector.class": None,
        "unclean.leader.election.enable": "true",
        "min.insync.replicas": "two",
        "follower.replication.throttled.rate": "1000",
        "leader.replication.throttled.rate": str(2**63 - 1),
    }
    found = decode_broker_configuration(options(values))
    assert found == BrokerConfiguration(
        replica_lag_time_max_ms=30_000,
        replica_selector_class="",
        unclean_leader_election=True,
        replication_throttles={"follower": 1000},
    )
    assert found.reads_from_followers is False
    assert BrokerConfiguration().reads_from_followers is None
    nothing = decode_broker_configuration(options({}))
    assert nothing == BrokerConfiguration()
    with pytest.raises(RefusedError, match="CLUSTER_AUTHORIZATION_FAILED"):
        decode_broker_configuration(options({}, error=31))


@pytest.mark.parametrize(
    ("selector", "reads"),
    [
        ("org.apache.kafka.common.replica.LeaderSelector", False),
        ("org.apache.kafka.common.replica.RackAwareReplicaSelector", True),
    ],
)
def test_a_replica_selector_decides_who_is_read_from(selector: str, reads: bool) -> None:
    found = decode_broker_configuration(options({"replica.selector.class": selector}))
    assert found.reads_from_followers is reads


@pytest.mark.parametrize(
    ("leaders", "followers", "found"),
    [
        ("", "", frozenset()),
        ("0:3,1:3", "0:4", frozenset({(0, 3), (1, 3), (0, 4)})),
        ("0:3", "*", ALL_REPLICAS),
        ("none", "", frozenset()),
        (None, "", None),
        ("0:3,x", "", None),
    ],
)
def test_throttled_replicas(
    leaders: str | None, followers: str | None, found: frozenset[tuple[int, int]] | str | None
) -> None:
    assert decode_throttled([leaders, followers]) == found


def check(report: BrokerReport) -> None:
    """The event of any report is one that the reducer reads."""
    event = report.event(1.0)
    batch = Batch(v=2, cluster="c", collector="k", collector_epoch=1, pass_number=1, events=[event])

    (read,) = decode_batch(msgspec.json.encode(batch)).events
    assert isinstance(read, BrokerState)


numbers = st.integers(-(2**63), 2**63 - 1)
texts = st.one_of(st.text(max_size=20), st.text("0123456789*,:-", max_size=25))
results = st.builds(
    Answer,
    error_code=st.integers(-(2**15), 2**15 - 1),
    log_dir=st.one_of(texts, st.just("x" * 5000), st.none()),
    total_bytes=numbers,
    usable_bytes=numbers,
    is_cordoned=st.booleans(),
    topics=st.none()
    | st.lists(
        st.builds(
            Answer,
            name=texts,
            partitions=st.none()
            | st.lists(
                st.builds(
                    Answer,
                    partition_index=numbers,
                    partition_size=numbers,
                    is_future_key=st.booleans(),
                ),
                max_size=2,
            ),
        ),
        max_size=2,
    ),
)


@given(st.integers(-5, 100), st.none() | st.lists(results, max_size=70))
def test_any_log_directories_give_a_valid_event_or_are_refused(error: int, found: Any) -> None:
    with contextlib.suppress(RefusedError):
        directories = decode_log_directories(Answer(API_VERSION=5, error_code=error, results=found))
        check(BrokerReport(1, 0.0, directories, None))


@given(st.dictionaries(st.sampled_from(BROKER_OPTIONS) | texts, st.none() | texts), st.lists(texts))
def test_any_options_give_a_valid_event(values: dict[str, str | None], lists: list[Any]) -> None:
    check(BrokerReport(1, 0.0, None, decode_broker_configuration(options(values))))
    decode_throttled(lists)


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_by_the_library_or_read(data: bytes) -> None:
    """A connection takes any exception of the library as no answer."""
    for response, decode in (
        (DescribeLogDirsResponse, decode_log_directories),
        (DescribeConfigsResponse, decode_broker_configuration),
    ):
        try:
            answer = response.decode(data, version=4)
        except Exception:
            continue
        with contextlib.suppress(RefusedError):
            found = decode(answer)
            if isinstance(found, LogDirectories):
                check(BrokerReport(1, 0.0, found, None))
            else:
                check(BrokerReport(1, 0.0, None, found))


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_answers_of_every_version_are_read(version: int) -> None:
    """Before version 4 nothing tells of the volume, before version 5 of a cordon."""
    result = DescribeLogDirsResponse.DescribeLogDirsResult
    topic = result.DescribeLogDirsTopic
    sized = topic.DescribeLogDirsPartition(
        partition_index=3, partition_size=8, offset_lag=0, is_future_key=False
    )
    one = result(
        error_code=0,
        log_dir="/a",
        topics=[topic(name="t", partitions=[sized])],
        total_bytes=9,
        usable_bytes=4,
        is_cordoned=version >= 5,
    )
    answer = DescribeLogDirsResponse(throttle_time_ms=0, error_code=0, results=[one])
    read = DescribeLogDirsResponse.decode(answer.encode(version=version), version=version)
    found = decode_log_directories(read)
    space = (9, 4) if version >= 4 else (None, None)
    assert found.directories[0].cordoned is (True if version >= 5 else None)
    assert found.sizes == {("t", 3): 8}
    assert [(d.path, d.error, d.total_bytes, d.usable_bytes) for d in found.directories] == [
        ("/a", None, *space)
    ]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_configurations_of_every_version_are_read(version: int) -> None:
    result = DescribeConfigsResponse.DescribeConfigsResult
    option = result.DescribeConfigsResourceResult
    one = result(
        error_code=0,
        error_message="",
        resource_type=4,
        resource_name="1",
        configs=[
            option(
                name="min.insync.replicas",
                value="2",
                read_only=False,
                config_source=5,
                is_sensitive=False,
                synonyms=[],
                config_type=3,
                documentation=None,
            )
        ],
    )
    answer = DescribeConfigsResponse(throttle_time_ms=0, results=[one])
    read = DescribeConfigsResponse.decode(answer.encode(version=version), version=version)
    found = decode_broker_configuration(read)
    assert found == BrokerConfiguration(min_in_sync_replicas=2, replication_throttles={})


@pytest.mark.parametrize(
    ("supported", "finalized", "epoch", "found"),
    [
        ({ELIGIBLE: 1}, {ELIGIBLE: 1, "metadata.version": 33}, 9, True),
        ({ELIGIBLE: 1}, {"metadata.version": 33}, 9, False),
        ({"metadata.version": 20}, {"metadata.version": 20}, 9, None),
        ({ELIGIBLE: 1}, {}, -1, None),
        ({}, {}, 0, None),
    ],
)
def test_eligible_leader_replicas_are_on_off_or_not_supported(
    supported: dict[str, int], finalized: dict[str, int], epoch: int, found: bool | None
) -> None:
    answer = ApiVersionsResponse(
        error_code=0,
        api_keys=[],
        throttle_time_ms=0,
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=n, min_version=0, max_version=v)
            for n, v in supported.items()
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(
                name=n, min_version_level=v, max_version_level=v
            )
            for n, v in finalized.items()
        ],
    )
    read = ApiVersionsResponse.decode(answer.encode(version=4), version=4)
    assert decode_eligible_leaders(read) is found
