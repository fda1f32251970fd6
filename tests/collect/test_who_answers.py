"""Whether a broker is the one that answers, which brokers there are, and at which address."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests.collect.fake_broker import CONFIGS
from tests.collect.fake_cluster import FakeCluster, outcomes, with_versions
from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import MIN_IN_SYNC, decode_configuration
from tidemark.collect.metadata import metadata_reader
from tidemark.collect.watched.metadata_fields import ShownMetadata, metadata_observation
from tidemark.core.events import OK, OTHER_BROKER, UNLISTED

ASKED = with_versions({CONFIGS: (1, 4)})


@ASKED
def test_no_answer_of_another_broker_is_one_of_this(cluster: FakeCluster) -> None:
    """Broker 3 gives clients the address of broker 2."""
    cluster.topic("t", 10)
    cluster.brokers[2].port = cluster.brokers[1].port
    events = cluster.run(2)
    assert outcomes(events) == {1: OK, 2: OK, 3: OTHER_BROKER}
    cluster.topic("t", 20)
    errors = {sample.broker: sample.error for sample in cluster.one().samples}
    assert errors == {1: None, 2: None, 3: OTHER_BROKER}


@ASKED
def test_a_broker_that_knows_its_number_is_ok(cluster: FakeCluster) -> None:
    cluster.topic("t", 10)
    assert set(outcomes(cluster.run(2)).values()) == {OK}


def test_a_broker_that_cannot_be_asked_is_taken_for_the_one(cluster: FakeCluster) -> None:
    cluster.topic("t", 10)
    cluster.brokers[2].port = cluster.brokers[1].port
    assert set(outcomes(cluster.run(2)).values()) == {OK}


@pytest.mark.parametrize(
    ("registered", "named"), [({}, True), ({9: True}, True), ({1: False}, False)]
)
def test_brokers_of_replica_lists_are_named_unless_they_are_none(
    cluster: FakeCluster,
    registered: dict[int, bool],
    named: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A collector that starts beside a dead broker, which no broker lists any more."""

    async def read(*_: object) -> dict[int, bool]:
        return registered

    monkeypatch.setattr(metadata_reader, "read_fenced", read)
    cluster.topic("t", 10)
    cluster.topics["t"] = {0: (1, 0, [1, 2, 9], [1, 2], 0)}
    cluster.passes._reader.fenced = registered
    found = outcomes(cluster.run(2))
    assert found.get(9) == (UNLISTED if named else None)


def test_every_address_of_a_name_is_tried(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers listen on 127.0.0.1 alone, and the name has ::1 too."""

    known = socket.getaddrinfo

    def resolve(host: str, port: int, *more: Any, **options: Any) -> list[Any]:
        if host != "broker.test":
            return known(host, port, *more, **options)
        places = ("::1", port, 0, 0), ("127.0.0.1", port)
        kinds = (socket.AF_INET6, socket.AF_INET)
        return [(k, socket.SOCK_STREAM, 6, "", p) for k, p in zip(kinds, places, strict=True)]

    cluster.topic("t", 10)
    cluster.set(host="broker.test")
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert set(outcomes(cluster.run(2)).values()) == {OK}


@pytest.mark.parametrize(("bounded", "minimum"), [(True, 1), (False, 2)])
def test_before_3_7_the_replicas_do_not_bound_the_minimum(bounded: bool, minimum: int) -> None:
    configuration = decode_configuration({MIN_IN_SYNC: "2"}, min_is_bounded=bounded)
    metadata = PartitionMetadata(1, 0, (1,), (1,), 0)
    read = ShownMetadata(metadata, EligibleReplicas(), Reassignment(), configuration, False)
    assert metadata_observation("t", 0, None, read).effective_min_in_sync_replicas == minimum
