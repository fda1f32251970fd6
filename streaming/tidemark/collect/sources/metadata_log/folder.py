"""The metadata log in a copy of a node's folder `__cluster_metadata-0`: snapshots and segments.

Every controller and every broker has one. It is read from its oldest usable point to its end. What
is damaged is reported and skipped; after a gap, reading continues at the next snapshot. The folder
does not say which records are committed: the last ones may have been undone since.

`tidemark collect --metadata-dir` writes its events as lines, for `tidemark replay`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tidemark.collect.cluster_choice import no_such_cluster
from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.publish.pack import Packer
from tidemark.collect.publish.publisher import LinePublisher
from tidemark.collect.sources.metadata_log.batches import (
    Batch,
    DamageError,
    read_batches,
)
from tidemark.collect.sources.metadata_log.changes import (
    Change,
    MetadataFold,
    Snapshot,
    decode_batch,
)
from tidemark.collect.sources.metadata_log.image import Watched
from tidemark.collect.sources.metadata_log.snapshots import SnapshotReader
from tidemark.command_line.output import echo
from tidemark.core.errors import ConfigError, TidemarkError, WireError
from tidemark.record_log.batches import MAX_BATCH_BYTES
from tidemark.settings import Cluster, Settings

FOLDER: Final = "__cluster_metadata-0"
CHUNK_BYTES: Final = 4 * 1024 * 1024
_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_CHECKPOINT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

EVENTS_AT_ONCE: Final = 1_000


class Numbered(NamedTuple):
    """A segment with its base offset, or a snapshot with its end offset."""

    offset: int
    path: Path


class MetadataFolder:
    """Raises ConfigError for a folder that is none. `report` gets what is skipped, in one line.

    `is_whole`: whether something was read, and no record was in a version that is not listed.
    """

    def __init__(self, folder: Path, report: Callable[[str], object]) -> None:
        inside = folder / FOLDER
        self._folder = inside if inside.is_dir() else folder
        self._report = report
        try:
            names = sorted(path.name for path in self._folder.iterdir())
        except OSError as error:
            raise ConfigError(f"cannot read {self._folder}: {error.strerror}.") from None
        self._segments = self._matching(_SEGMENT, names)
        self._snapshots = self._matching(_CHECKPOINT, names)
        if not self._segments and not self._snapshots:
            raise ConfigError(
                f"{self._folder} has no segment (*.log) and no snapshot (*.checkpoint) of the "
                f"metadata log; give a copy of a node's folder {FOLDER}."
            )
        # The first offset that is not applied.
        self._offset = 0
        self._unlisted: set[str] = set()

    @property
    def is_whole(self) -> bool:
        return self._offset > 0 and not self._unlisted

    def _matching(self, pattern: re.Pattern[str], names: list[str]) -> list[Numbered]:
        matches = (pattern.fullmatch(name) for name in names)
        return [Numbered(int(m[1]), self._folder / m[0]) for m in matches if m is not None]

    def read(self, watched: Watched) -> Iterator[Change]:
        """The events, in order; each has the time of its record as that of its observation."""
        fold = MetadataFold(watched)
        first = self._segments[0].offset if self._segments else None
        if first != 0:
            yield from self._bridge(fold, first or 0)
        begin = self._offset
        for segment in self._segments:
            yield from self._read_segment(fold, segment)
        newer = [snapshot for snapshot in self._snapshots if snapshot.offset > self._offset]
        if newer:
            yield from self._bridge(fold, self._offset + 1)
        if self._offset == 0:
            return
        self._report(
            f"read offsets {begin} to {self._offset - 1}; {fold.others} records are of other "
            "types. The folder does not say which records are committed: the last ones may have "
            "been undone."
        )

    def _read_segment(self, fold: MetadataFold, segment: Numbered) -> Iterator[Change]:
        try:
            for batch in self._batches(segment.path):
                if batch.last_offset < self._offset:
                    continue
                if batch.base_offset > self._offset:
                    yield from self._bridge(fold, self._offset + 1)
                if batch.base_offset > self._offset:
                    self._report(
                        f"offsets {self._offset} to {batch.base_offset - 1} are missing, and no "
                        "snapshot covers them: partitions that existed before are left out"
                    )
                    fold.forget()
                    self._offset = batch.base_offset
                if batch.base_offset <= self._offset <= batch.last_offset:
                    yield from fold.apply(decode_batch(batch), None)
                    self._offset = batch.last_offset + 1
                    self._note_unlisted(fold)
        except WireError as error:
            self._report(f"{segment.path.name}: {error}; the rest of the file is skipped")
        except OSError as error:
            self._report(f"{segment.path.name}: {error.strerror}; skipped")

    def _bridge(self, fold: MetadataFold, lowest: int) -> Iterator[Change]:
        """Continues from the first readable snapshot that ends at `lowest` or above."""
        for snapshot in self._snapshots:
            if snapshot.offset < lowest:
                continue
            try:
                found = self._snapshot(fold, snapshot.path)
            except (WireError, OSError) as error:
                self._report(f"{snapshot.path.name}: {error}; skipped")
                continue
            if self._offset:
                self._report(
                    f"offsets {self._offset} to {snapshot.offset - 1} are missing or damaged; "
                    f"continued from {snapshot.path.name}"
                )
            self._offset = snapshot.offset
            yield from fold.replace(found, snapshot.offset, found.record_at)
            self._note_unlisted(fold)
            return

    def _note_unlisted(self, fold: MetadataFold) -> None:
        for name, record in fold.image.unlisted.items():
            if name not in self._unlisted:
                self._report(f"before offset {self._offset}: {record}")
                self._unlisted.add(name)

    def _snapshot(self, fold: MetadataFold, path: Path) -> Snapshot:
        reader = SnapshotReader(fold.image.watched, check_crc=True)
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                reader.add(chunk)
        return reader.close()

    def _batches(self, path: Path) -> Iterator[Batch]:
        """The batches of a segment. Raises DamageError after the ones before the damage."""
        position, rest = 0, b""
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                rest += chunk
                try:
                    batches, size = read_batches(rest, check_crc=True)
                except DamageError as error:
                    yield from error.batches
                    raise WireError(
                        f"damaged at byte {position + error.position}: {error}"
                    ) from None
                yield from batches
                position, rest = position + size, rest[size:]
                if len(rest) > 2 * MAX_BATCH_BYTES:
                    raise WireError(f"damaged at byte {position}")
        if rest.strip(b"\x00"):
            raise WireError(f"the last batch is cut at byte {position}: {len(rest)} bytes of it")


def write_metadata_folder(
    folder: Path, settings: Settings, name: str | None, publisher: LinePublisher
) -> None:
    """Writes one line per 256 events. What is skipped goes to standard error.

    The topics are those of the configured cluster `name`; all topics without one. Raises
    ConfigError, and TidemarkError after the last line where something could not be read.
    """
    configured = {cluster.name: cluster for cluster in settings.clusters}
    if name is not None and configured and name not in configured:
        raise no_such_cluster(name, settings)
    cluster = configured.get(name or "") or Cluster(name=name or "local")
    watched = Inventory(cluster, publisher.groups)
    epoch = int(time.time() * 1000)
    packer = Packer(cluster.name, settings.collect.collector, epoch, 0, publisher.groups)
    waiting = 0
    log = MetadataFolder(folder, _report)
    for event in log.read(watched):
        packer.add(0, event)
        waiting += 1
        if waiting == EVENTS_AT_ONCE:
            publisher.put(packer.take())
            waiting = 0
        if publisher.broken:
            return
    publisher.put(packer.take())
    if not log.is_whole:
        raise TidemarkError(f"the metadata log in {folder} could not be read; see above.")


def _report(text: str) -> None:
    echo(f"collect: {text}", err=True)
