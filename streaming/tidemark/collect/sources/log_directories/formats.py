"""The text files in a log directory: bytes to values.

Mirrors CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile, PartitionMetadataFile and
MetaPropertiesEnsemble. Every failure is a FormatError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# The bounds of what is read. A broker has a few thousand replicas, 200,000 at most.
MAX_ENTRIES: Final = 200_000
MAX_OFFSETS_BYTES: Final = 32 * 1024 * 1024
MAX_FILE_BYTES: Final = 1024 * 1024
MAX_OFFSET: Final = 2**63 - 1
MAX_NUMBER: Final = 2**31 - 1
# The only version so far of each of these files.
VERSION: Final = 0
META_VERSIONS: Final = (0, 1)

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
# Topic and number of a partition's folder. One with a suffix, as in t-0.<uuid>-delete, has none.
_FOLDER: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_UUID: Final = re.compile(r"[A-Za-z0-9_-]{22}")

TopicPartition = tuple[str, int]


class FormatError(ValueError):
    """Why a file is not what its name says."""


class MetaProperties(NamedTuple):
    """meta.properties: whose directory it is; a broker of ZooKeeper's time may have no id yet."""

    broker: int | None
    cluster_id: str | None


def parse_offsets(data: bytes) -> dict[TopicPartition, int]:
    """`topic partition offset` lines, as replication-offset-checkpoint and its three siblings."""
    found: dict[TopicPartition, int] = {}
    for line, words in _entries(data):
        if len(words) != 3 or _TOPIC.fullmatch(words[0]) is None:
            raise FormatError(f"line {line} is not `topic partition offset`")
        key = (words[0], _number(words[1], MAX_NUMBER, line))
        if key in found:
            raise FormatError(f"line {line} repeats {key[0]}-{key[1]}")
        found[key] = _number(words[2], MAX_OFFSET, line)
    return found


def parse_epochs(data: bytes) -> list[tuple[int, int]]:
    """`epoch start-offset` lines, as leader-epoch-checkpoint: ascending."""
    found: list[tuple[int, int]] = []
    for line, words in _entries(data):
        if len(words) != 2:
            raise FormatError(f"line {line} is not `epoch offset`")
        epoch, start = _number(words[0], MAX_NUMBER, line), _number(words[1], MAX_OFFSET, line)
        if found and (epoch <= found[-1][0] or start < found[-1][1]):
            raise FormatError(
                f"line {line}: epoch {epoch} from {start} does not follow {found[-1]}"
            )
        found.append((epoch, start))
    return found


def parse_topic_id(data: bytes) -> str:
    """The topic id in a partition.metadata."""
    fields = dict(_pairs(data, ":"))
    if fields.get("version") != str(VERSION):
        raise FormatError(_unknown_version(fields.get("version", "none")))
    topic_id = fields.get("topic_id", "")
    if _UUID.fullmatch(topic_id) is None:
        raise FormatError("it has no topic_id")
    return topic_id


def parse_meta_properties(data: bytes) -> MetaProperties:
    """node.id (or broker.id, version 0) and cluster.id."""
    fields = dict(_pairs(data, "="))
    version = fields.get("version", "none")
    if version not in map(str, META_VERSIONS):
        raise FormatError(_unknown_version(version))
    broker = fields.get("node.id", fields.get("broker.id"))
    cluster_id = fields.get("cluster.id")
    if cluster_id is not None and not 1 <= len(cluster_id) <= 255:
        raise FormatError("cluster.id is not an id")
    return MetaProperties(None if broker is None else _number(broker, MAX_NUMBER, None), cluster_id)


def parse_folder(name: str) -> TopicPartition | None:
    """The partition of a folder; None for what is none, is deleted, moves here or is stray."""
    match = _FOLDER.fullmatch(name)
    if match is None or int(match[2]) > MAX_NUMBER:
        return None
    return match[1], int(match[2])


def _entries(data: bytes) -> Iterator[tuple[int, list[str]]]:
    """(line number, words) of a CheckpointFile: version, count, then as many lines."""
    if not data:
        # Kafka creates the files empty.
        return
    *lines, rest = _text(data).split("\n")
    if rest or not lines:
        # Kafka ends each line. An offset that is cut is a number, too.
        raise FormatError("its last line is cut")
    if lines[0].strip() != str(VERSION):
        raise FormatError(_unknown_version(lines[0]))
    if len(lines) < 2:
        raise FormatError("it ends before its number of entries")
    count = _number(lines[1].strip(), MAX_NUMBER, 2)
    if count > MAX_ENTRIES:
        raise FormatError(f"it has {count} entries, more than {MAX_ENTRIES}")
    if count != len(lines) - 2:
        raise FormatError(f"it announces {count} entries and has {len(lines) - 2}")
    for line, text in enumerate(lines[2:], 3):
        yield line, text.split()


def _pairs(data: bytes, separator: str) -> Iterator[tuple[str, str]]:
    for line in _text(data).splitlines():
        key, found, value = line.partition(separator)
        if found and not key.lstrip().startswith("#"):
            yield key.strip(), value.strip()


def _number(text: str, limit: int, line: int | None) -> int:
    # int() alone takes other digits, signs and underscores too.
    if _NUMBER.fullmatch(text) is None or int(text) > limit:
        where = "" if line is None else f"line {line}: "
        raise FormatError(f"{where}{text[:20]!r} is not a number from 0 to {limit}")
    return int(text)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("it is not text") from error


def _unknown_version(version: str) -> str:
    return f"unknown version {version[:20]!r}; this Tidemark reads version {VERSION}"
