"""The folders of partitions among those that an operator names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.record_log.segments import Place, segments_of

# `orders-0`, and what LogManager renames: `orders-0.<uuid>-delete`, -future, -stray.
_NAME: Final = re.compile(
    r"([A-Za-z0-9._-]{1,249}?)-(\d{1,10})(?:\.[0-9a-f]{32}-(?:delete|future|stray))?"
)


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
