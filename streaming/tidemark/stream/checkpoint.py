"""The settings that a checkpoint fixes at its first start, in `tidemark.json` beside Spark's files.

Spark reads the store provider back from the checkpoint and ignores the configuration without a
message; with another number of Kafka partitions, groups would miss their state. Here a
disagreement stops the start. The folder may be on any file system that Hadoop reaches, so
the JVM reads and writes it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.settings import Settings

FILE: Final = "tidemark.json"
# Of this file. A newer program reads older versions, an older program refuses newer ones.
VERSION: Final = 1


class FixedSettings(Struct, kw_only=True):
    """The settings that may not change while the checkpoint exists."""

    v: int = VERSION
    topic: str
    partitions: int
    # The groups, as 0.1.0 wrote and compares it. Spark keeps its own number of shuffle partitions.
    shuffle_partitions: int
    store_provider: str


# Field -> the setting that decides it.
SETTING_OF: Final = {
    "topic": "topics.prefix",
    "partitions": "topics.partitions",
    "shuffle_partitions": "topics.partitions",
    "store_provider": "stream.store_provider",
}


def fixed_settings(settings: Settings) -> FixedSettings:
    """The settings that a first start with this configuration fixes."""
    topics = settings.topics
    return FixedSettings(
        topic=topics.replica_state,
        partitions=topics.partitions,
        shuffle_partitions=topics.partitions,
        store_provider=settings.stream.store_provider,
    )


def check_fixed_settings(found: FixedSettings, wanted: FixedSettings, checkpoint: str) -> None:
    """Raises ConfigError with the setting, both values and the two ways out if they disagree."""
    if found.v > VERSION:
        raise ConfigError(
            f"the checkpoint {checkpoint} was written by a newer Tidemark. "
            "Upgrade this one, or give another stream.checkpoint."
        )
    for field, setting in SETTING_OF.items():
        before, now = getattr(found, field), getattr(wanted, field)
        if before != now:
            raise ConfigError(
                f"the checkpoint {checkpoint} was started with {field} = {before}, "
                f"the configuration ({setting}) now gives {now}. Set it back, "
                "or give a new stream.checkpoint: state is then built again from the events that "
                "the topic still holds."
            )


def fix_settings(
    jvm: Any, hadoop_configuration: Any, checkpoint: str, wanted: FixedSettings
) -> None:
    """Writes `tidemark.json` at the first start, checks it at every later one.

    `jvm` is py4j's view of the driver's JVM, `hadoop_configuration` its Hadoop configuration.
    Raises ConfigError or TidemarkError.
    """
    try:
        folder = jvm.org.apache.hadoop.fs.Path(checkpoint)
        files = folder.getFileSystem(hadoop_configuration)
        path = jvm.org.apache.hadoop.fs.Path(folder, FILE)
        data = _read(jvm, files, path) if files.exists(path) else None
        used = files.exists(jvm.org.apache.hadoop.fs.Path(folder, "metadata"))
    except Exception as error:
        raise _checkpoint_error("read", checkpoint, error) from None
    if data is not None:
        check_fixed_settings(_decode(data, checkpoint), wanted, checkpoint)
        return
    if used:
        raise ConfigError(
            f"the checkpoint {checkpoint} belongs to another query: it has no {FILE}. "
            "Give a folder of its own as stream.checkpoint."
        )
    try:
        _write(jvm, files, folder, path, msgspec.json.format(msgspec.json.encode(wanted)) + b"\n")
    except Exception as error:
        raise _checkpoint_error("write", checkpoint, error) from None


def _read(jvm: Any, files: Any, path: Any) -> str:
    stream = files.open(path)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def _write(jvm: Any, files: Any, folder: Any, path: Any, data: bytes) -> None:
    """By a rename: a start that is killed here leaves no file or a whole one."""
    files.mkdirs(folder)
    draft = jvm.org.apache.hadoop.fs.Path(folder, f".{FILE}.draft")
    stream = files.create(draft, True)
    try:
        stream.write(bytearray(data))
    finally:
        stream.close()
    if not files.rename(draft, path):
        raise OSError(f"{FILE} could not be renamed into place")


def _decode(data: str, checkpoint: str) -> FixedSettings:
    try:
        return msgspec.json.decode(data, type=FixedSettings)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{checkpoint}/{FILE} cannot be read: {error}. "
            "Restore it from a backup, or give a new stream.checkpoint."
        ) from None


def _checkpoint_error(verb: str, checkpoint: str, error: Exception) -> TidemarkError:
    """With the message of the Java exception behind a py4j error, on one line."""
    java = getattr(error, "java_exception", None)
    text = str(java.toString()) if java is not None else str(error)
    return TidemarkError(
        f"cannot {verb} the checkpoint {checkpoint}: {' '.join(text.split())[:300]}. "
        "Check stream.checkpoint and the rights on it."
    )
