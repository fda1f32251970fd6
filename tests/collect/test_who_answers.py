"""Whether a broker is the one that answers, which brokers there are, and at which address."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.collect.fake_broker import API_VERSIONS, CONFIGS, FETCH
from tests.collect.fake_cluster import FakeCluster, outcomes, with_versions
from tests.collect.socket_answers import Answer, serving, text
from tidemark.collect.codecs.metadata_image import EligibleReplicas, PartitionMetadata, Reassignment
from tidemark.collect.codecs.topic_configuration import MIN_IN_SYNC, decode_configuration
from tidemark.collect.metadata import metadata_reader
from tidemark.collect.watched.watched_partition import ShownMetadata, metadata_observation
from tidemark.core.broker_outcome_texts import NOT_CHECKED, ONE_ADDRESS
from tidemark.core.events import (
    CONTROLLER_LISTENER,
    NOT_KAFKA,
    OK,
    OTHER_BROKER,
    SHARED_ADDRESS,
    TIMED_OUT,
    UNLISTED,
    Pass,
)

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


def test_where_nobody_can_be_asked_an_address_of_two_is_of_none(cluster: FakeCluster) -> None:
    """Broker 3 gives clients the address of broker 2, and there is no DescribeConfigs."""
    cluster.topic("t", 10)
    cluster.brokers[2].port = cluster.brokers[1].port
    assert outcomes(cluster.run(2)) == {1: OK, 2: SHARED_ADDRESS, 3: SHARED_ADDRESS}
    found = {(f.subject, f.outcome) for f in cluster.passes.findings}
    assert ("brokers 2, 3", ONE_ADDRESS) in found


def test_a_broker_that_cannot_be_asked_is_watched_and_said_to_be_unproven(
    cluster: FakeCluster,
) -> None:
    cluster.topic("t", 10)
    events = cluster.run(2)
    assert set(outcomes(events).values()) == {OK}
    passed = next(event for event in events if isinstance(event, Pass))
    assert {each.identity_checked for each in passed.brokers} == {False}
    assert [f.outcome for f in cluster.passes.findings] == [NOT_CHECKED]


def test_a_process_at_the_old_address_of_a_broker_is_not_taken_for_it(
    cluster: FakeCluster,
) -> None:
    """Broker 3 dies; another process takes its port before any broker lists it again."""
    cluster.topic("t", 10)
    cluster.run(2)
    cluster.set(metadata=lambda: (cluster.brokers[:2], cluster.topics))
    cluster.passes._connections.drop(3)
    assert outcomes(cluster.run(3)) == {1: OK, 2: OK, 3: UNLISTED}
    cluster.set(metadata=lambda: (cluster.brokers, cluster.topics))
    assert outcomes(cluster.run_until_ok(3))[3] == OK


@ASKED
def test_nothing_is_asked_of_a_broker_before_it_is_known_who_it_is(cluster: FakeCluster) -> None:
    cluster.topic("t", 10)
    cluster.brokers[1].hangs = lambda key: key == CONFIGS
    events = cluster.run(2)
    assert outcomes(events) == {1: OK, 2: TIMED_OUT, 3: OK}
    asked = {type(request).__name__ for request in cluster.brokers[1].requests}
    assert not asked & {"ListOffsetsRequest", "FetchRequest"}, asked


CONTROLLERS = {API_VERSIONS: (0, 3), FETCH: (4, 12)}


def test_a_listener_of_controllers_is_named(cluster: FakeCluster) -> None:
    cluster.topic("t", 10)
    cluster.brokers[2].versions = CONTROLLERS
    assert outcomes(cluster.run(2)) == {1: OK, 2: OK, 3: CONTROLLER_LISTENER}


def test_a_bootstrap_server_that_is_no_broker_is_named(cluster: FakeCluster) -> None:
    cluster.brokers[0].versions = CONTROLLERS
    assert outcomes(cluster.run(2)) == {}
    (found,) = cluster.passes.findings
    assert str(found) == (
        f"bootstrap server at 127.0.0.1:{cluster.brokers[0].port} (controller_listener): "
        "a listener of controllers answers there, which serves no clients; give the address of a "
        "broker's listener"
    )


ANSWERS = (text(b"HTTP/1.1 400 Bad Request\r\n\r\n"), text(b"\x15\x03\x03\x00\x02\x02\x46"))


@pytest.mark.parametrize("answer", ANSWERS, ids=("http", "tls"))
def test_a_port_of_another_protocol_is_named(cluster: FakeCluster, answer: Answer) -> None:
    with serving(answer) as other:
        cluster.topic("t", 10)
        cluster.brokers[2].port = urlsplit(other.url).port or 0
        assert outcomes(cluster.run(2))[3] == NOT_KAFKA


def test_a_port_of_http_that_waits_for_the_end_of_a_line_is_named(cluster: FakeCluster) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster.topic("t", 10)
        cluster.brokers[2].port = server.server_port
        assert outcomes(cluster.run(3))[3] == NOT_KAFKA
        server.shutdown()


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


@pytest.mark.parametrize(
    "said", [{"rack": "r" * 300}, {"host": "h" * 300}, {"port": 70_000}, {"broker": -7}]
)
def test_what_no_event_can_carry_costs_its_broker_alone(
    cluster: FakeCluster, said: dict[str, Any]
) -> None:
    cluster.topic("t", 10)
    vars(cluster.brokers[2]).update(said)
    cluster.set(cluster_id="c" * 300)
    events = cluster.run(2)
    passed = next(event for event in events if isinstance(event, Pass))
    assert {each.broker for each in passed.brokers if each.outcome == OK} >= {1, 2}
    assert passed.cluster_id == "c" * 255
    broker_3 = cluster.passes._connections.by_broker.get(3)
    assert broker_3 is None or broker_3.connected or broker_3.failures
    racks = {each.broker: each.rack for each in passed.brokers}
    assert racks.get(3) == ("r" * 255 if "rack" in said else None)


@with_versions({API_VERSIONS: (0, 5)})
def test_since_4_4_a_broker_says_who_it_is_without_a_right(cluster: FakeCluster) -> None:
    """Broker 3 gives clients the address of broker 2; there is no DescribeConfigs."""
    cluster.topic("t", 10)
    cluster.brokers[2].port = cluster.brokers[1].port
    events = cluster.run(2)
    assert outcomes(events) == {1: OK, 2: OK, 3: OTHER_BROKER}
    passed = next(event for event in events if isinstance(event, Pass))
    assert [each.identity_checked for each in passed.brokers] == [True, True, None]


@with_versions({API_VERSIONS: (0, 5)})
def test_since_4_4_a_broker_of_another_cluster_is_none_of_this(cluster: FakeCluster) -> None:
    cluster.topic("t", 10)
    cluster.run(2)
    cluster.brokers[2].cluster_id = "another"
    cluster.passes._connections.drop(3)
    cluster.set(metadata=lambda: (cluster.brokers, cluster.topics))
    assert outcomes(cluster.run())[3] == OTHER_BROKER
