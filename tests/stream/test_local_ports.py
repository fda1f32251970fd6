"""The ports of a local run answer nobody who lacks the secret that Spark made."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Final

import pytest

from tests.stream.conftest import StreamProcess
from tests.stream.supervised import jvms
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import publish_passes
from tidemark.settings import Settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]
# An org.apache.spark.network.protocol.RpcRequest in its frame: the size of the frame, the type of
# the message, its id and the size of its body.
_RPC_REQUEST: Final = Struct(">qbqi")
BODY: Final = b"\xac\xed\x00\x05 who are you?"
LISTENS: Final = "0A"


def listening_ports(pid: int) -> Iterator[int]:
    """The TCP ports on which a process listens."""
    links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and f"socket:[{fields[9]}]" in links:
                yield int(fields[1].rpartition(":")[2], 16)


def answer(port: int) -> str:
    """To a request of Spark's without any authentication."""
    frame = _RPC_REQUEST.pack(_RPC_REQUEST.size + len(BODY), 3, 7, len(BODY)) + BODY
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(frame)
        client.shutdown(socket.SHUT_WR)
        try:
            return client.recv(65536).decode(errors="replace")
        except (TimeoutError, ConnectionResetError):
            return ""


def test_sparks_ports_ask_for_the_secret(
    settings: Settings, stream: Callable[..., StreamProcess]
) -> None:
    publish_passes(settings, SyntheticPasses(partitions=8, groups=4), [0])
    running = stream(settings)
    running.wait_for(lambda: bool(running.lines("batch")), "a batch")
    (jvm,) = jvms(running.process.pid)
    answers = [answer(port) for port in listening_ports(jvm)]
    sparks = [text for text in answers if "org.apache.spark" in text]
    # The driver's RPC, and its block manager.
    assert len(sparks) == 2, answers
    assert all("Expected SaslMessage" in text for text in sparks), sparks
