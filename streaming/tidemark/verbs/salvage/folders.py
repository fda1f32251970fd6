"""Saved logs by partition: the folders that an operator names, and what the escrow holds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.core.text import rfc3339, table
from tidemark.escrow.sealed import Label, Seal, stored
from tidemark.record_log.segments import Place, segments_of
from tidemark.settings import Settings

HEADING = ("CLUSTER", "PARTITION", "OFFSETS", "EPOCH", "BATCHES", "BYTES", "SINCE")

# `orders-0`, and what LogManager renames: `orders-0.<uuid>-delete`, -future, -stray.
_NAME: Final = re.compile(
    r"([A-Za-z0-9._-]{1,249}?)-(\d{1,10})(?:\.[0-9a-f]{32}-(?:delete|future|stray))?"
)


def held_lines(settings: Settings, cluster: str | None) -> list[str]:
    """A line for each partition and epoch. Raises ClusterError where nothing is held."""
    found: dict[tuple[str, str, int | None], list[tuple[int, int, int, float]]] = defaultdict(list)
    for label, message in _copies(settings, cluster, None):
        found[label.cluster, f"{label.topic}-{label.partition}", label.leader_epoch].append(
            (label.start, label.end, len(message.value or b""), message.timestamp / 1000)
        )
    rows = [
        (
            *(name[0], name[1]),
            f"[{min(c[0] for c in copies)}, {max(c[1] for c in copies)})",
            "?" if name[2] is None else str(name[2]),
            str(len(copies)),
            str(sum(c[2] for c in copies)),
            rfc3339(min(c[3] for c in copies)),
        )
        for name, copies in sorted(found.items(), key=lambda each: (each[0][:2], each[0][2] or 0))
    ]
    if not rows:
        raise ClusterError("the escrow holds no record, or none that this user may see.")
    return table([HEADING, *rows], (3, 4, 5))


def escrow_folders(
    settings: Settings, cluster: str | None, places: Collection[Place], folder: Path
) -> list[Path]:
    """Writes what is held of `places` as saved logs into `folder`; those folders.

    A log ends where the next copy is of a lower offset, or of another epoch after a gap: markers of
    one leader's log decide no transaction of another one's. Raises ConfigError for another key,
    ClusterError where nothing is held.
    """
    seal = Seal(settings.escrow.key_file)
    # Partition -> the end of each of its logs and the epoch there, in the order of the folders.
    ends: dict[Place, list[tuple[int, int | None]]] = defaultdict(list)
    clusters: set[str] = set()
    for label, message in _copies(settings, cluster, places):
        place = (label.topic, label.partition)
        clusters.add(label.cluster)
        if len(clusters) > 1:
            raise ConfigError("the escrow holds records of several clusters; give --cluster NAME.")
        logs = ends[place]
        before = logs[-1] if logs else (-1, -1)
        is_next = label.start == before[0] or label.leader_epoch == before[1]
        if not is_next or label.start < before[0]:
            logs.append(before)
        logs[-1] = (label.end, label.leader_epoch)
        log = folder / str(len(logs)) / f"{label.topic}-{label.partition}"
        log.mkdir(parents=True, exist_ok=True)
        with (log / f"{0:020d}.log").open("ab") as segment:
            segment.write(seal.open(label, message.key, message.value or b""))
    if not ends:
        names = ", ".join(f"{topic}-{number}" for topic, number in sorted(places))
        raise ClusterError(f"the escrow holds no record of {names}.")
    return sorted(folder.iterdir())


def _copies(
    settings: Settings, cluster: str | None, places: Collection[Place] | None
) -> Iterator[tuple[Label, Any]]:
    for label, message in stored(settings):
        is_wanted = places is None or (label.topic, label.partition) in places
        if is_wanted and cluster in (None, label.cluster):
            yield label, message


def saved_folders(folders: Collection[Path], place: Place | None) -> dict[Place, list[Path]]:
    """The folders of each partition, in the order given.

    Each of `folders` is that of a partition, or one with such folders: a broker's data folder or a
    copy of it. The segments of a folder with another name are those of `place`. Raises ConfigError.
    """
    found: dict[Place, list[Path]] = defaultdict(list)
    for folder in folders:
        try:
            has_segments = bool(segments_of(folder))
            entries = [] if has_segments else sorted(folder.iterdir())
        except OSError as error:
            raise ConfigError(
                f"cannot read {folder}: {error.strerror}. Give the folder of a partition "
                "(orders-0), or the one that contains it."
            ) from None
        if has_segments:
            found[_place_of(folder, place)].append(folder)
            continue
        for entry in entries:
            match = _NAME.fullmatch(entry.name)
            if match is not None and entry.is_dir():
                found[match[1], int(match[2])].append(entry)
    if not found:
        raise ConfigError(
            f"no log is saved in {', '.join(map(str, folders))}: give the folder of a partition "
            "(orders-0), or the one that contains it."
        )
    return dict(found)


def _place_of(folder: Path, place: Place | None) -> Place:
    match = _NAME.fullmatch(folder.absolute().name)
    if place is not None:
        return place
    if match is None:
        raise ConfigError(
            f"{folder} has no name such as orders-0: name its partition with --partition orders:0."
        )
    return match[1], int(match[2])
