"""No secret of `stream.spark` is in `ps`, an environment, a page, a log, a file or a metric."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import requests
from msgspec import structs

from tests.processes import descendants
from tests.stream.conftest import StreamProcess
from tests.stream.synthetic import SyntheticPasses
from tests.stream.topics import publish_passes
from tidemark.settings import Settings
from tidemark_lab.brokers.ports import free_ports

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]
SECRET: Final = "hunter2-is-secret"
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
