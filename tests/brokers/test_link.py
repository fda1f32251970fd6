from __future__ import annotations

import socket
import threading

import pytest

from tidemark_lab.brokers.link import Link
from tidemark_lab.brokers.ports import free_ports


@pytest.fixture
def echo() -> tuple[str, int]:
    """The address of a server that returns what it gets."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(1024):
                    connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    address: tuple[str, int] = server.getsockname()
    return address


def connect(address: tuple[str, int]) -> socket.socket:
    connection = socket.create_connection(address, 5.0)
    connection.settimeout(5.0)
    return connection


def is_closed(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"x")
        return connection.recv(1) == b""
    except OSError:
        return True


def test_a_link_forwards_until_it_is_cut_and_again_once_it_is_restored(
    echo: tuple[str, int],
) -> None:
    address = ("127.0.0.1", free_ports(1)[0])
    with Link(address, echo) as link:
        first = connect(address)
        first.sendall(b"ping")
        assert first.recv(4) == b"ping"
        link.cut()
        assert first.recv(1) == b""
        first.close()
        with connect(address) as refused:
            assert is_closed(refused)
        link.restore()
        with connect(address) as again:
            again.sendall(b"pong")
            assert again.recv(4) == b"pong"


def test_a_link_to_nothing_closes_what_connects() -> None:
    here, nowhere = (("127.0.0.1", port) for port in free_ports(2))
    with Link(here, nowhere), connect(here) as connection:
        assert is_closed(connection)
