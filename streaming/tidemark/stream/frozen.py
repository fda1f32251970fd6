"""What the first start of a query froze for as long as its checkpoint lives, in `tidemark.json` beside Spark's own files.

Spark reads n, the shuffle partitions and the store provider back from the checkpoint and goes on with them in silence,
whatever the configuration says; a changed n would then send partitions to groups that never saw their past. Here a
disagreement stops the start. The folder may lie on any file system that Hadoop reaches, so the JVM reads and writes it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.settings import Settings

FILE: Final = "tidemark.json"
# Of this file; a younger program reads older ones through an upcaster, an older program refuses younger ones.
VERSION: Final = 1


class Frozen(Struct, kw_only=True):
    """The choices a checkpoint is bound to."""

    v: int = VERSION
    topic: str
    partitions: int
    shuffle_partitions: int
    store_provider: str


# Field -> the setting that decides it.
SETTING_OF: Final = {
    "topic": "topics.prefix",
    "partitions": "topics.partitions",
    "shuffle_partitions": "topics.partitions",
    "store_provider": "stream.store_provider",
}


def frozen_by(settings: Settings) -> Frozen:
    """What a first start with this configuration would freeze."""
    topics = settings.topics
    return Frozen(
        topic=topics.replica_state,
        partitions=topics.partitions,
        shuffle_partitions=topics.partitions,
        store_provider=settings.stream.store_provider,
    )


def check_frozen(found: Frozen, wanted: Frozen, checkpoint: str) -> None:
    """Raises ConfigError naming the setting, both values and the two ways out when they disagree."""
    if found.v > VERSION:
        raise ConfigError(
            f"the checkpoint {checkpoint} was written by a newer Tidemark. Upgrade this one, or give another stream.checkpoint."
        )
    for field, setting in SETTING_OF.items():
        before, now = getattr(found, field), getattr(wanted, field)
        if before != now:
            raise ConfigError(
                f"the checkpoint {checkpoint} was started with {field} = {before}, the configuration ({setting}) now gives {now}. Set it back, "
                "or give a new stream.checkpoint: state is then built again from the events that the topic still holds."
            )


def freeze(jvm: Any, hadoop_configuration: Any, checkpoint: str, wanted: Frozen) -> None:
    """Writes `tidemark.json` on the first start, checks it on every later one. Raises ConfigError or TidemarkError.

    `jvm` is py4j's view of the driver's JVM, `hadoop_configuration` its Hadoop configuration.
    """
    try:
        folder = jvm.org.apache.hadoop.fs.Path(checkpoint)
        files = folder.getFileSystem(hadoop_configuration)
        path = jvm.org.apache.hadoop.fs.Path(folder, FILE)
        data = _read(jvm, files, path) if files.exists(path) else None
        used = files.exists(jvm.org.apache.hadoop.fs.Path(folder, "metadata"))
    except Exception as error:
        raise TidemarkError(
            f"cannot read the checkpoint {checkpoint}: {_java_reason(error)}. Check stream.checkpoint and the rights on it."
        ) from None
    if data is not None:
        check_frozen(_decode(data, checkpoint), wanted, checkpoint)
        return
    if used:
        raise ConfigError(
            f"the checkpoint {checkpoint} belongs to another query: it has no {FILE}. Give a folder of its own as stream.checkpoint."
        )
    try:
        _write(jvm, files, folder, path, msgspec.json.format(msgspec.json.encode(wanted)) + b"\n")
    except Exception as error:
        raise TidemarkError(
            f"cannot write the checkpoint {checkpoint}: {_java_reason(error)}. Check stream.checkpoint and the rights on it."
        ) from None


def _read(jvm: Any, files: Any, path: Any) -> str:
    stream = files.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def _write(jvm: Any, files: Any, folder: Any, path: Any, data: bytes) -> None:
    """By a rename, so that a start that is killed here leaves either no file or a whole one."""
    files.mkdirs(folder)
    draft = jvm.org.apache.hadoop.fs.Path(folder, f".{FILE}.draft")
    stream = files.create(draft, True)
    try:
        stream.write(bytearray(data))
    finally:
        stream.close()
    if not files.rename(draft, path):
        raise OSError(f"{FILE} could not be renamed into place")


def _decode(data: str, checkpoint: str) -> Frozen:
    try:
        return msgspec.json.decode(data, type=Frozen)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{checkpoint}/{FILE} cannot be read: {error}. Restore it from a backup, or give a new stream.checkpoint."
        ) from None


def _java_reason(error: Exception) -> str:
    """The message of the Java exception behind a py4j error, on one line."""
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    return " ".join(text.split())[:300]
