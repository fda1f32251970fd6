"""A password that is replaced in its file is the one of the next connection, of every client."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority, openssl
from tests.collect.fake_broker import VERSIONS, FakeBroker
from tidemark.collect.connect.connection import BrokerConnection, Network
from tidemark.core.events import AUTHENTICATION_FAILED, OK
from tidemark.kafka.client import checked_options, make_consumer
from tidemark.kafka.options import client_options
from tidemark.kafka.secret_files import file_text
from tidemark.settings import Connection

HANDSHAKE, AUTHENTICATE = 17, 36


class PlainBroker(FakeBroker):
    """Asks for a password, by SASL PLAIN."""

    def __init__(self, password: str) -> None:
        super().__init__(1, {**VERSIONS, HANDSHAKE: (0, 1), AUTHENTICATE: (0, 1)})
        self.password = password
        # Closes the connection in place of an answer to the login.
        self.closes = False
        self.metadata = lambda: ([self], {})

    def login(self, token: bytes) -> int:
        if self.closes:
            self.disconnect()
        return 0 if token == f"u\0u\0{self.password}".encode() else 58


@pytest.fixture
def broker() -> Iterator[PlainBroker]:
    made = PlainBroker("old")
    yield made
    made.close()


@pytest.fixture
def connection(broker: PlainBroker, tmp_path: Path) -> Connection:
    file = tmp_path / "password"
    file.write_text("old\n", encoding="utf-8")
    return Connection(
        bootstrap_servers=[f"127.0.0.1:{broker.port}"],
        client={
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "u",
            "sasl_plain_password_file": str(file),
        },
    )


def outcome(network: Network, connection: BrokerConnection) -> str:
    """Of a new attempt."""
    connection.close()
    network.loop.run(network.loop.wait, [connection.connect(2.0)], 2.5)
    return OK if connection.connected else connection.outcome


def test_the_collector_logs_in_with_what_the_file_holds(
    broker: PlainBroker, connection: Connection, tmp_path: Path
) -> None:
    network = Network(checked_options(connection))
    asked = network.pool().get(1, "127.0.0.1", broker.port)
    assert outcome(network, asked) == OK
    broker.password = "new"
    assert outcome(network, asked) == AUTHENTICATION_FAILED
    (tmp_path / "password").write_text("new", encoding="utf-8")
    assert outcome(network, asked) == OK
    (tmp_path / "password").unlink()
    assert outcome(network, asked) == AUTHENTICATION_FAILED
    network.loop.close()


def test_a_login_that_ends_with_the_connection_is_named(
    broker: PlainBroker, connection: Connection
) -> None:
    """As real brokers end it: kafka-python drops an answer that comes with the end."""
    network = Network(checked_options(connection))
    asked = network.pool().get(1, "127.0.0.1", broker.port)
    broker.closes = True
    assert outcome(network, asked) == AUTHENTICATION_FAILED
    network.loop.close()


def test_a_consumer_logs_in_with_what_the_file_holds(
    broker: PlainBroker, connection: Connection, tmp_path: Path
) -> None:
    consumer = make_consumer(connection)
    assert consumer.topics() == set()
    broker.password = "new"
    (tmp_path / "password").write_text("new", encoding="utf-8")
    for each in broker._open:
        each.shutdown(socket.SHUT_RDWR)
    assert consumer.topics() == set()
    consumer.close()


def test_a_pipe_gives_its_secret_once(broker: PlainBroker, connection: Connection) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"old")
    os.close(writer)
    connection.client["sasl_plain_password_file"] = f"/dev/fd/{reader}"
    password = client_options(connection)["sasl_plain_password"]
    assert (password, callable(password)) == ("old", False)
    os.close(reader)


def test_openssl_takes_the_password_of_a_key_from_its_file(tmp_path: Path) -> None:
    """As kafka-python gives it to each connection."""
    certificate, key = Authority(tmp_path).issue("client")
    locked, file = tmp_path / "locked.pem", tmp_path / "password"
    password = None
    for text in ("first", "second"):
        openssl(
            tmp_path, "pkcs8", "-topk8", *f"-in {key} -out {locked} -passout pass:{text}".split()
        )
        file.write_text(text, encoding="utf-8")
        password = password or file_text(str(file))
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, locked, password)
    assert password == "first"
