"""Another user of the machine tries every port, file, environment and argument of a stream."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import Final

import pytest
import requests
from msgspec import structs

from tests.processes import descendants
from tests.stream.conftest import StreamProcess
from tests.stream.supervised import jvms
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import publish_passes
from tidemark.settings import Settings
from tidemark_lab.brokers.ports import free_ports

pytestmark = [pytest.mark.spark, pytest.mark.slow]
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


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
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


# The ports of a local run answer nobody who lacks the secret that Spark made.


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


# No secret of `stream.spark` is in `ps`, an environment, a page, a log, a file or a metric.


LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
PAGES: Final = ("environment/", "SQL/", "StreamingQuery/", "jobs/", "stages/", "executors/")


def secret_settings(settings: Settings, folder: Path, ui_port: int, own_port: int) -> Settings:
    """Secrets under names that Spark redacts by default, and under some that it does not."""
    spark = {
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": SECRET,
        "kafka.sasl.jaas.config": f'{LOGIN} required username="u" password="{SECRET}";',
        "kafka.ssl.key.password": SECRET,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui_port),
    }
    stream = structs.replace(settings.stream, spark=spark, listen=f"127.0.0.1:{own_port}")
    return structs.replace(settings, stream=stream)


def processes(root: int) -> Iterator[tuple[str, bytes]]:
    """What other users see of the processes, and the environments of this user's."""
    for pid in [root, *descendants(root)]:
        for name in ("cmdline", "environ"):
            yield f"{name} of {pid}", Path(f"/proc/{pid}/{name}").read_bytes()


def pages(port: int, own_port: int) -> Iterator[tuple[str, bytes]]:
    base = f"http://127.0.0.1:{port}/"
    (application,) = json.loads(fetch(f"{base}api/v1/applications"))
    rest = f"{base}api/v1/applications/{application['id']}"
    for url in [base + page for page in PAGES] + [f"{rest}/environment", f"{rest}/sql"]:
        yield url, fetch(url)
    yield "metrics", fetch(f"http://127.0.0.1:{own_port}/metrics")


def fetch(url: str) -> bytes:
    answer = requests.get(url, timeout=30)
    assert answer.status_code == 200, url
    return answer.content


@pytest.mark.soak
def test_no_secret_is_shown(
    settings: Settings, stream: Callable[..., StreamProcess], tmp_path: Path
) -> None:
    ui_port, own_port = free_ports(2)
    events = tmp_path / "events"
    events.mkdir()
    publish_passes(settings, SyntheticPasses(partitions=8, groups=4, offline_every=5), [0])
    running = stream(secret_settings(settings, events, ui_port, own_port))
    running.wait_for(lambda: bool(running.lines("batch")), "a batch", 240.0)
    found = [*processes(running.process.pid), *pages(ui_port, own_port)]
    assert running.terminate()[0] == 0
    files = [*events.rglob("*"), *Path(settings.stream.checkpoint).rglob("*"), running.log]
    found += [(str(path), path.read_bytes()) for path in files if path.is_file()]
    # What is searched is what Spark wrote about these settings.
    assert any(b"fs.azure.account.key" in data for _, data in found)
    assert sum(path.startswith(str(events)) for path, _ in found) >= 1
    assert [name for name, data in found if SECRET.encode() in data] == []
