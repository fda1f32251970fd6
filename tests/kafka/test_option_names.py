"""Messages name the options of the connection that they are about."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tidemark.collect.cluster_choice import select_clusters
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.client import check_reachable
from tidemark.kafka.option_names import FromProperties, named_options, with_names
from tidemark.kafka.options import KNOWN, client_options
from tidemark.settings import Cluster, Connection, Settings

MESSAGE = "configuration: client.ssl_keyfile /etc/client.pem: check client.ssl_password."
OF_KAFKA = MESSAGE.replace(" client.", " kafka.client.")


def test_each_connection_has_its_names() -> None:
    cluster = Cluster(name="west", client={"ssl_password": "x"})
    assert with_names(MESSAGE, Connection()) == OF_KAFKA
    assert with_names(MESSAGE, cluster).startswith(
        "configuration: cluster `west`: client.ssl_keyfile /etc/client.pem: check client."
    )
    for connection in (Connection(), cluster):
        of_file = replace(connection, client=FromProperties())
        assert with_names(MESSAGE, of_file) == (
            "--command-config: ssl.keyfile /etc/client.pem: check ssl.key.password."
        )


def test_names_are_given_once() -> None:
    for connection in (Connection(), Cluster(name="a"), Connection(client=FromProperties())):
        once = with_names(MESSAGE, connection)
        assert with_names(once, connection) == once


@pytest.mark.parametrize("option", sorted(KNOWN))
def test_every_option_is_found_in_a_message(option: str) -> None:
    text = f"configuration: client.client_id: see client.{option}."
    assert f" kafka.client.{option}." in with_names(text, Connection())
    of_file = with_names(text, Connection(client=FromProperties()))
    assert of_file.startswith("--command-config: client.id: see ")
    assert option not in of_file


def test_the_kind_of_the_error_and_other_messages_stay() -> None:
    with (
        pytest.raises(ClusterError, match=r"kafka\.client\.ssl_cafile"),
        named_options(Connection()),
    ):
        raise ClusterError("check client.ssl_cafile")
    error = ConfigError("another")
    with pytest.raises(ConfigError) as raised, named_options(Connection()):
        raise error
    assert raised.value is error


def test_a_cluster_of_the_command_line_has_the_options_of_kafka() -> None:
    settings = Settings(kafka=Connection(client={"securty_protocol": "SSL"}))
    (cluster,) = select_clusters(settings, "k:1", "east").clusters
    with pytest.raises(ConfigError, match=r"^configuration: kafka\.client: .*`securty_protocol`"):
        client_options(cluster)


def test_a_failed_handshake_names_the_options_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.kafka.client.outcome_of", lambda _error: "tls_handshake_failed")
    servers = ["127.0.0.1:1"]
    found = []
    clients: tuple[dict[str, Any], ...] = ({}, FromProperties())
    for client in clients:
        with pytest.raises(ClusterError) as raised:
            check_reachable(Connection(bootstrap_servers=servers, client=client), 1.0)
        found.append(str(raised.value))
    assert "check kafka.client.security_protocol and kafka.client.ssl_cafile" in found[0]
    assert "check security.protocol and ssl.truststore.location" in found[1]
