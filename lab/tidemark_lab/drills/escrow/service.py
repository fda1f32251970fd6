"""`tidemark escrow` as a process, fed with the views of a drill as the stream writes them."""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import yaml

from tidemark.kafka.client import close_producer, make_producer
from tidemark.reduce.rows import Row
from tidemark.settings import Connection
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.process import ChildProcess
from tidemark_lab.brokers.wait import wait_until
from tidemark_lab.drills.pipeline import Pipeline

VIEWS, STATE = "tidemark.partition-views", "tidemark.replica-state"
GROUPS: Final = 2
# From a pass to its views: what Kafka and Spark take.
VIEW_SECONDS: Final = 1.0
LOG: Final = "escrow.log"
READY: Final = "keeping second copies"
_SECONDS: Final = 30.0


def start_escrow(
    stack: ExitStack, pipeline: Pipeline, folder: Path, delay_seconds: float, **options: Any
) -> EscrowService:
    """Fed by a pipeline, with a Kafka of its own; both close with the stack."""
    own = stack.enter_context(LocalCluster(folder / "own"))
    cluster = pipeline.watched_cluster()
    watched = {"name": cluster.name, "bootstrap_servers": cluster.bootstrap_servers}
    service = EscrowService(folder, watched, own, delay_seconds, **options)
    stack.callback(service.close)
    pipeline.on_rows = service.take
    return service


class EscrowService:
    """`delay_seconds`: what Kafka and Spark take from a pass to its views."""

    def __init__(
        self,
        folder: Path,
        watched: dict[str, Any],
        own: LocalCluster,
        delay_seconds: float,
        **options: Any,
    ) -> None:
        """`own`: the Kafka of Tidemark's topics. `options` are those of `escrow`."""
        self._folder, self._delay = folder, delay_seconds
        servers = own.bootstrap_servers
        for topic in (VIEWS, STATE):
            own.create_topic(topic, dict.fromkeys(range(GROUPS), BROKERS))
        self.config = folder / "escrow.yaml"
        document = {
            "kafka": {"bootstrap_servers": servers},
            "clusters": [watched],
            "topics": {"partitions": GROUPS},
            "escrow": {"topics": [".*"], **options},
        }
        self.config.write_text(yaml.safe_dump(document), encoding="utf-8")
        self._producer = make_producer(Connection(bootstrap_servers=servers), linger_ms=0)
        self._views: queue.SimpleQueue[tuple[float, Sequence[Row]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="views", daemon=True)
        self._ended = threading.Event()
        self._thread.start()
        self._child = self._start()
        self.kills = 0

    def wait(self) -> None:
        """Until it copies, as long before a fault. Raises ClusterError."""
        log = self._folder / LOG
        wait_until(lambda: READY in log.read_text("utf-8"), 2 * _SECONDS, "the escrow has started")

    def take(self, rows: Sequence[Row]) -> None:
        """What the product has made now: of it the views, and the ends of views."""
        self._views.put((time.monotonic(), rows))

    def kill(self) -> None:
        """SIGKILL, and a new process at once, as a supervisor starts it."""
        self._child.kill()
        self._child = self._start()
        self.kills += 1

    def close(self) -> None:
        self._ended.set()
        self._views.put(None)
        self._thread.join(_SECONDS)
        close_producer(self._producer, 1.0)
        self._child.stop(_SECONDS)

    def _start(self) -> ChildProcess:
        command = [sys.executable, "-m", "tidemark.cli", "escrow", "--config", str(self.config)]
        return ChildProcess("escrow", command, self._folder / LOG)

    def _send(self) -> None:
        while (item := self._views.get()) is not None:
            at, rows = item
            self._ended.wait(max(0.0, at + self._delay - time.monotonic()))
            for row in rows:
                if row.destination == "partition_views":
                    self._producer.send(VIEWS, key=row.key, value=row.value)
