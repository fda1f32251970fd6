"""Writes log directories as a broker does."""

from __future__ import annotations

from pathlib import Path

TOPIC_ID = "IN5SKWU9QVSkytuyH69blQ"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


def offsets(entries: dict[tuple[str, int], int]) -> str:
    """A checkpoint file of offsets."""
    lines = [f"{topic} {number} {offset}" for (topic, number), offset in entries.items()]
    return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines])


def replace(path: Path, text: str) -> None:
    """As CheckpointFile: a new file takes the name at once."""
    written = path.with_name(path.name + ".tmp")
    written.write_text(text)
    written.rename(path)


def write_partition(directory: Path, topic: str, number: int) -> None:
    """The folder of a partition with one epoch change at 18."""
    folder = directory / f"{topic}-{number}"
    folder.mkdir(exist_ok=True)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 18\n")
    for base, size in ((0, 300), (18, 200)):
        (folder / f"{base:020}.log").write_bytes(bytes(size))
        (folder / f"{base:020}.index").write_bytes(bytes(10))
    (folder / f"{18:020}.timeindex").write_bytes(bytes(12))
    (folder / f"{18:020}.snapshot").write_bytes(bytes(7))


def write_directory(directory: Path, broker: int = 3, cluster_id: str = "abc") -> Path:
    """The log directory of a broker with partition t-0: HW 42, flushed to 20."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "meta.properties").write_text(
        f"#\n#Sun Nov 22 14:00:00 UTC 2026\nversion=1\nnode.id={broker}\ncluster.id={cluster_id}\n"
    )
    write_partition(directory, "t", 0)
    replace(directory / HIGH_WATERMARKS, offsets({("t", 0): 42}))
    replace(directory / RECOVERY_POINTS, offsets({("t", 0): 20}))
    replace(directory / "log-start-offset-checkpoint", offsets({}))
    (directory / "cleaner-offset-checkpoint").write_text("")
    return directory
