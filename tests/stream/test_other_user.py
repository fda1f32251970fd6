"""Another user of the machine tries every port, file, environment and argument of a stream."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from msgspec import structs

from tests.processes import descendants
from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.test_local_ports import answer, listening_ports
from tests.stream.test_secrets import LOGIN
from tests.stream.topics import publish_passes
from tidemark.settings import Settings

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]
NOBODY: Final = 65534
SECRET: Final = "hunter2-is-secret"
# What each kind of server might answer without authentication: HTTP, Py4J's gateway and its
# callback server, and the daemon of Python workers, to which a worker's first message is a secret.
REQUESTS: Final = {
    "http": b"GET /environment/ HTTP/1.0\r\n\r\n",
    "py4j": b"r\nu\njava\nrj\ne\n",
    "py4j system": b"c\nz:java.lang.System\ngetenv\ne\n",
    "python worker": b"\x00\x00\x00\x06secret",
}


def as_nobody(look: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    """What a process of that user sees; a fork, as this Python may be in a folder of root's."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_look, args=(look, theirs))
    child.start()
    theirs.close()
    found: dict[str, bytes] = ours.recv()
    child.join()
    return found


def _look(look: Callable[[], dict[str, bytes]], theirs: Connection) -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    theirs.send(look())


def readable(pids: list[int], folders: list[Path], ports: list[int]) -> Iterator[tuple[str, bytes]]:
    """Place -> what is read there, of everything that can be read."""
    for pid in pids:
        for name in ("cmdline", "environ", "maps", "fd", "mem"):
            with suppress(OSError):
                yield f"/proc/{pid}/{name}", Path(f"/proc/{pid}/{name}").read_bytes()
    for folder in folders:
        for place, _, names in os.walk(folder):
            yield place, b""
            for name in names:
                with suppress(OSError):
                    yield f"{place}/{name}", Path(place, name).read_bytes()
    for port in ports:
        yield f"{port} spark", answer(port).encode()
        for kind, request in REQUESTS.items():
            yield f"{port} {kind}", asked(port, request)


def asked(port: int, request: bytes) -> bytes:
    found = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=3) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65536):
            found += part
    return found


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that all users may use, as /tmp is; those of pytest are closed to others."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_no_secret_can_be_read_by_another_user(
    settings: Settings,
    stream: Callable[..., StreamProcess],
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(shared))
    spark = {
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "kafka.ssl.key.password": SECRET,
        "kafka.sasl.jaas.config": f'{LOGIN} required username="u" password="{SECRET}";',
    }
    own = structs.replace(
        settings.stream, spark=spark, listen="127.0.0.1:0", checkpoint=str(shared / "checkpoint")
    )
    running = stream(structs.replace(settings, stream=own))
    publish_passes(settings, SyntheticPasses(partitions=8, groups=4), [0])
    running.wait_for(lambda: bool(running.lines("batch")), "a batch", 180)
    pids = [running.process.pid, *descendants(running.process.pid)]
    ports = {pid: [*listening_ports(pid)] for pid in pids}
    every_port = sorted({port for found in ports.values() for port in found})
    # The gateway, the RPC and the block manager of Java, the callbacks of Python, and the workers.
    assert len(every_port) >= 5, ports

    found = as_nobody(lambda: dict(readable(pids, [shared], every_port)))
    assert {f"{port} spark" for port in every_port} <= found.keys()
    assert [place for place, data in found.items() if SECRET.encode() in data] == []
    # Arguments are for all to see; nothing else of the processes, and no file.
    assert {place.rpartition("/")[2] for place in found if place.startswith("/proc")} == {"cmdline"}
    assert len([*shared.iterdir()]) >= 2
    assert [place for place in found if place.startswith(str(shared))] == [str(shared)]
    for kind in ("py4j system", "python worker"):
        for port in every_port:
            assert b"PATH" not in found[f"{port} {kind}"]
    assert running.process.poll() is None
    publish_passes(settings, SyntheticPasses(partitions=8, groups=4), [1])
    running.wait_for(lambda: len(running.lines("batch")) >= 2, "the next batch")
