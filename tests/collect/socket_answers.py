"""Endpoints that answer connections with bytes of the test."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections.abc import Callable, Iterator

from tidemark.settings import JmxEndpoint

Answer = Callable[[socket.socket], None]


@contextlib.contextmanager
def serving(*answers: Answer, read: bool = True) -> Iterator[JmxEndpoint]:
    """An endpoint that answers each connection with the next answer, and then with the last one."""
    server = socket.create_server(("127.0.0.1", 0))

    def handle(client: socket.socket, answer: Answer) -> None:
        with client, contextlib.suppress(OSError):
            if read:
                client.recv(65536)
            answer(client)

    def serve() -> None:
        for answer in itertools.chain(answers, itertools.repeat(answers[-1])):
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(client, answer), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield JmxEndpoint(broker=1, url=f"http://127.0.0.1:{server.getsockname()[1]}/metrics")
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def text(*parts: bytes) -> Answer:
    def answer(client: socket.socket) -> None:
        for part in parts:
            client.sendall(part)

    return answer
