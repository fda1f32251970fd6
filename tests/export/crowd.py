"""`python -m tests.export.crowd PORT PASSWORD SLOW IDLE FAILING`: clients, until the input ends.

A process of its own, so that they do not delay those who measure. A client that is disconnected
connects again. Prints a line once all have connected.
"""

from __future__ import annotations

import http.client
import selectors
import socket
import sys
import threading
from base64 import b64encode
from contextlib import suppress
from itertools import count

# Of the clients with a wrong password: the bound on those that wait is for each address.
STRANGER = "127.0.0.3"


def main() -> None:
    port, slow, idle, failing = map(int, (sys.argv[1], *sys.argv[3:]))
    lines = ("GET /metrics HTTP/1.1", "Host: a", f"Authorization: {authorization(sys.argv[2])}")
    scrape = "".join(f"{line}\r\n" for line in (*lines, "")).encode()
    selector = selectors.DefaultSelector()
    for text, number in ((scrape, slow), (b"", idle)):
        for _ in range(number):
            hang(port, text, selector)
    for place in range(failing):
        threading.Thread(target=fail, args=(port, place), daemon=True).start()
    threading.Thread(target=hold, args=(port, selector), daemon=True).start()
    print("connected", flush=True)
    sys.stdin.read()


def authorization(password: str) -> str:
    return "Basic " + b64encode(f"anna:{password}".encode()).decode()


def ask(port: int, path: str, password: str, address: str) -> bytes:
    """What is answered; nothing where it is a refusal."""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=20, source_address=(address, 0)
    )
    try:
        connection.request("GET", path, headers={"Authorization": authorization(password)})
        answer = connection.getresponse()
        text = answer.read()
        return text if answer.status == 200 else b""
    finally:
        connection.close()


def hang(port: int, text: bytes, selector: selectors.BaseSelector) -> None:
    """A connection that sends a text and reads nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(10)
    with suppress(OSError):
        connection.connect(("127.0.0.1", port))
        connection.sendall(text)
    selector.register(connection, selectors.EVENT_READ, text)


def hold(port: int, selector: selectors.BaseSelector) -> None:
    pause = threading.Event()
    while not pause.wait(0.5):
        for key, _ in selector.select(0):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            try:
                ended = not connection.recv(1, socket.MSG_PEEK)
            except OSError:
                ended = True
            if ended:
                selector.unregister(connection)
                connection.close()
                hang(port, key.data, selector)


def fail(port: int, place: int) -> None:
    """Wrong passwords, each of them new, for pages and for scrapes."""
    pause = threading.Event()
    for attempt in count():
        with suppress(OSError, http.client.HTTPException):
            ask(port, "/metrics" if place % 2 else "/", f"wrong {place} {attempt}", STRANGER)
        pause.wait(0.5)


if __name__ == "__main__":
    main()
