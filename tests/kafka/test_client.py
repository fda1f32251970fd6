"""Connections to Kafka: unreachable servers, and options."""

from __future__ import annotations

import socket

import pytest

from tests.collect.fake_broker import FakeBroker
from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.client import (
    _answering_servers,
    check_reachable,
    checked_options,
    choose_connection,
)
from tidemark.settings import Connection, Settings


def test_a_server_that_never_answers_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"{address} did not answer in time"):
            check_reachable(Connection(bootstrap_servers=[address]), 0.5)


def test_a_server_that_never_answers_delays_no_other() -> None:
    broker = FakeBroker(1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = f"127.0.0.1:{listener.getsockname()[1]}"
        answering = f"127.0.0.1:{broker.port}"
        connection = Connection(bootstrap_servers=[silent, answering])
        check_reachable(connection)
        # The client gets this server only: it tries one at random until its own timeout.
        assert _answering_servers(connection, 10.0, 0.05) == [answering]
    broker.close()


def test_client_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers: it is not host:port"):
        checked_options(Connection(bootstrap_servers=["kafka"]))
    client = {"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}
    assert checked_options(Connection(client=client))["sasl_mechanism"] == "GSSAPI"


def test_bootstrap_servers_of_the_command_line_replace_the_configured_ones() -> None:
    settings = Settings(
        kafka=Connection(bootstrap_servers=["a:1"], client={"sasl_mechanism": "PLAIN"})
    )
    assert choose_connection(settings, None) is settings.kafka
    chosen = choose_connection(settings, "b:1, c:2,")
    assert (chosen.bootstrap_servers, chosen.client) == (["b:1", "c:2"], settings.kafka.client)
    with pytest.raises(ConfigError, match="--bootstrap is empty"):
        choose_connection(settings, ",")
