"""What is written arrives whole and in order, whatever the socket takes at once."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tidemark.collect.connect.event_loop import EventLoop
from tidemark.collect.connect.transport import RECEIVE_BYTES, DirectTransport


class Protocol:
    """In place of a connection: what was received, and why it ended."""

    _sensors = None

    def __init__(self) -> None:
        self.received = b""
        self.lost: list[Any] = []

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Any) -> None:
        self.lost.append(error)

    def eof_received(self) -> bool:
        return False


class Pair:
    """A transport on one end, a blocking socket on the other."""

    def __init__(self) -> None:
        self.loop, self.protocol = EventLoop(), Protocol()
        ours, self.theirs = socket.socketpair()
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.theirs.settimeout(10)
        self.transport = DirectTransport(self.loop.net, ours, host="h")
        self.transport.set_protocol(self.protocol)
        self.transport.resume_reading()

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.loop.net.poll(timeout_ms=10)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            self.turn()
            with contextlib.suppress(BlockingIOError):
                data += self.theirs.recv(100_000, socket.MSG_DONTWAIT)
        return data


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.transport.abort()
    made.theirs.close()
    made.loop.close()


def test_a_small_request_is_sent_at_once(pair: Pair) -> None:
    pair.transport.write(b"request")
    assert pair.theirs.recv(100) == b"request"


def test_requests_of_any_size_arrive_in_order(pair: Pair) -> None:
    dice = random.Random(5)
    requests = [dice.randbytes(dice.choice([1, 90, 70_000, 300_000])) for _ in range(12)]
    for request in requests:
        pair.transport.write(request)
    sent = b"".join(requests)
    assert pair.read(len(sent)) == sent
    pair.transport.write(b"after")
    assert pair.read(5) == b"after"


def test_answers_larger_than_one_read_arrive(pair: Pair) -> None:
    answer = random.Random(6).randbytes(3 * RECEIVE_BYTES + 17)
    sent = 0
    while len(pair.protocol.received) < len(answer):
        sent += pair.theirs.send(answer[sent : sent + 50_000]) if sent < len(answer) else 0
        pair.turn()
    assert pair.protocol.received == answer


def test_the_end_of_the_stream_ends_the_connection(pair: Pair) -> None:
    pair.theirs.sendall(b"last")
    pair.theirs.close()
    pair.turn(4)
    assert pair.protocol.received == b"last"
    assert len(pair.protocol.lost) == 1


def test_a_write_to_a_closed_peer_raises_nothing(pair: Pair) -> None:
    pair.theirs.close()
    pair.transport.write(b"request")
    pair.turn(4)
    assert len(pair.protocol.lost) == 1
    with pytest.raises(RuntimeError, match="closed"):
        pair.transport.write(b"more")
