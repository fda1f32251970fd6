"""Faults of the brokers' disks: records that never left the page cache, old checkpoints, no space.

A process that is killed loses nothing that it wrote: the page cache survives it. What a machine
loses that fails is cut off by hand while the broker is down.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from tidemark.core.errors import ClusterError
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster, Place
from tidemark_lab.brokers.replica_logs import (
    CHECKPOINT,
    RECOVERY_POINTS,
    cut_log,
    cut_unflushed,
    log_folder,
    read_checkpoint,
)
from tidemark_lab.faults.node_faults import BrokerFault, KillAll

_FILL_BYTES: Final = 1 << 20


class PageCacheLoss(BrokerFault):
    """The machine of one broker fails: its process dies, and the newest records with it.

    `records` of each partition at least; `inside`: a part of the next batch is on the disk.
    """

    name = "page cache loss"

    def __init__(
        self,
        cluster: LocalCluster,
        broker: int,
        partitions: Sequence[Place],
        records: int,
        *,
        inside: bool = False,
    ) -> None:
        super().__init__(cluster, broker)
        self.partitions = tuple(partitions)
        self._records, self._inside = records, inside

    @property
    def detail(self) -> str:
        where = "inside a batch" if self._inside else "at a batch boundary"
        return f"broker {self._broker}, {self._records} records or more, {where}"

    def inject(self) -> None:
        self._cluster.kill_broker(self._broker)
        folder = self._cluster.log_directory(self._broker)
        for place in self.partitions:
            cut_log(log_folder(folder, place), self._records, inside=self._inside)


class PowerFailure(KillAll):
    """Every broker's machine fails at once, and loses the newest records of its logs.

    `records`: by broker. The controller goes on.
    """

    name = "power failure"

    def __init__(
        self, cluster: LocalCluster, partitions: Sequence[Place], records: Mapping[int, int]
    ) -> None:
        super().__init__(cluster, BROKERS)
        self._records = records
        self.partitions = tuple(partitions)

    @property
    def detail(self) -> str:
        lost = (f"broker {broker} {records}" for broker, records in self._records.items())
        return f"every broker; records lost: {', '.join(lost)}"

    def inject(self) -> None:
        for broker in BROKERS:
            self._cluster.pause_broker(broker)
        super().inject()
        for broker, records in self._records.items():
            folder = self._cluster.log_directory(broker)
            for place in self.partitions:
                cut_log(log_folder(folder, place), records, inside=True)


class LostCheckpoint(BrokerFault):
    """A broker stops in good order, and loses its checkpoint of high watermarks."""

    name = "lost high watermark checkpoint"

    def inject(self) -> None:
        self._cluster.stop_broker(self._broker)
        (self._cluster.log_directory(self._broker) / CHECKPOINT).unlink(missing_ok=True)


class DiskFull(BrokerFault):
    """Another program fills the file system of one of a broker's log directories.

    `folder`: in a small file system of its own, such as `SmallDisk`.
    """

    name = "disk full"

    def __init__(self, cluster: LocalCluster, broker: int, folder: Path, limit_bytes: int) -> None:
        super().__init__(cluster, broker)
        self._file, self._limit_bytes = folder / "filler", limit_bytes

    def inject(self) -> None:
        written = 0
        try:
            with self._file.open("wb", buffering=0) as file:
                while written <= self._limit_bytes:
                    written += file.write(bytes(_FILL_BYTES))
        except OSError:
            return
        self._file.unlink(missing_ok=True)
        raise ClusterError(
            f"{self._file.parent} took {written} bytes: it is no file system of its own."
        )

    def heal(self) -> None:
        self._file.unlink(missing_ok=True)
        # A broker never uses a failed directory again.
        self._cluster.kill_broker(self._broker)
        super().heal()


class SmallDisk:
    """A tmpfs of a few MiB at a folder, as root on Linux. A context manager."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self.folder, self.size_bytes = folder, size_bytes

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        self._run("mount", "-t", "tmpfs", "-o", f"size={self.size_bytes}", "tmpfs", self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        # The brokers that used it may still be ending: it goes with its last user.
        self._run("umount", "--lazy", self.folder)

    def _run(self, *command: str | Path) -> None:
        try:
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise ClusterError(f"cannot run {command[0]}: {error.strerror}.") from None
        if ran.returncode != 0:
            reason = (ran.stderr.strip().splitlines() or ["it failed"])[0].rstrip(".")
            raise ClusterError(
                f"cannot {command[0]} {self.folder}: {reason}. Run it as root on Linux."
            )


def cut_logs(
    directory: Path, places: Iterable[Place], most_records: int, chance: random.Random
) -> int:
    """Loses the end of about half of these logs, as a power failure loses the page cache.

    Each loses up to `most_records`, to a batch boundary or to a point inside a batch, and never
    what was flushed: nothing below its recovery point. Returns the number of records lost.
    """
    flushed = read_checkpoint(directory / RECOVERY_POINTS)
    lost = 0
    for place in places:
        records, inside = chance.randint(0, most_records), chance.random()
        if chance.random() < 0.5:
            part = (inside - 0.5) * 2 if inside >= 0.5 else 0.0
            lost += cut_unflushed(
                log_folder(directory, place), records, part, flushed.get(place, 0)
            )
    return lost


def wipe_logs(directory: Path, places: Iterable[Place]) -> None:
    """A new disk: no log of these partitions, and no checkpoint names them."""
    for place in places:
        shutil.rmtree(log_folder(directory, place), ignore_errors=True)
    for file in directory.glob("*-checkpoint"):
        file.unlink()
