"""Spark standalone on this machine: a master and its workers."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from msgspec import structs

from tests.delivery.services import free_port
from tests.processes import descendants, kill, start_logged
from tidemark.jvm.java import find_java
from tidemark.settings import Settings
from tidemark.stream.daemon import __name__ as daemon_module
from tidemark_lab.brokers.wait import wait_until

SPARK = Path(pyspark.__file__).parent
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


class Standalone:
    """A master and its workers, as processes bound to 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self._folder, port = folder, free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.master = self._start(MASTER, "master", "--port", str(port))
        wait_until(lambda: "I have been elected leader" in self.log("master"), 240, "master")
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_worker(self) -> None:
        name = f"worker-{len(self.workers)}"
        options = ["--cores", "2", "--memory", "1g", "--work-dir", str(self._folder / name)]
        self.workers.append(self._start(WORKER, name, *options, self.url))
        wait_until(lambda: "Successfully registered" in self.log(name), 240, name)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.txt").read_text()

    def _start(self, kind: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        listen = ["--host", "127.0.0.1", "--webui-port", str(free_port())]
        environment = {**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_HOME": str(SPARK)}
        return start_logged(
            [str(SPARK / "bin" / "spark-class"), kind, *listen, *arguments],
            self._folder / f"{name}.txt",
            env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    def end(self) -> None:
        for process in [*self.workers, self.master]:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            kill_tree(process)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    kill([process.pid, *descendants(process.pid)])
    process.wait(20)


@contextmanager
def standalone(folder: Path, workers: int) -> Iterator[Standalone]:
    running = Standalone(folder)
    try:
        for _ in range(workers):
            running.add_worker()
        yield running
    finally:
        running.end()


def on(settings: Settings, master: Standalone, checkpoint: Path) -> Settings:
    """The configuration for this master, as docs/deploy.md describes it."""
    spark = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.executor.memory": "800m",
        "spark.executor.cores": "2",
        "spark.python.daemon.module": daemon_module,
    }
    stream = structs.replace(
        settings.stream, master=master.url, checkpoint=str(checkpoint), spark=spark
    )
    return structs.replace(settings, stream=stream)
