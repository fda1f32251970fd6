"""The settings that a checkpoint fixes at its first start, in `tidemark.json` beside Spark's files.

Spark reads the store provider back from the checkpoint and ignores the configuration without a
message; with another number of Kafka partitions, groups would miss their state. Here a
disagreement stops the start. The folder may be on any file system that Hadoop reaches, so
the JVM reads and writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

import structlog
from msgspec import DecodeError, Struct, json

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.kafka.topics import PROCEDURE
from tidemark.settings import Settings
from tidemark.stream.spark_internals import hadoop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE: Final = "tidemark.json"
# Of this file and of the states beside it. A checkpoint of another version is refused.
VERSION: Final = 2
NEW_CHECKPOINT: Final = (
    "give a new stream.checkpoint: the state is then built again from the events that the topic "
    "still holds."
)

log = structlog.get_logger()


class FixedSettings(Struct, kw_only=True):
    """The settings that may not change while the checkpoint exists."""

    v: int = VERSION
    topic: str
    partitions: int
    store_provider: str
    # Which topic of that name was read, where brokers say it; it may change.
    topic_id: str | None = None


# Field -> the setting that decides it.
SETTING_OF: Final = {
    "topic": "topics.prefix",
    "partitions": "topics.partitions",
    "store_provider": "stream.store_provider",
}


def fixed_settings(settings: Settings) -> FixedSettings:
    """The settings that a first start with this configuration fixes."""
    topics = settings.topics
    return FixedSettings(
        topic=topics.replica_state,
        partitions=topics.partitions,
        store_provider=settings.stream.store_provider,
    )


def check_fixed_settings(found: FixedSettings, wanted: FixedSettings, checkpoint: str) -> None:
    """Raises ConfigError with the setting, both values and the two ways out if they disagree."""
    if found.v != VERSION:
        raise ConfigError(
            f"the checkpoint {checkpoint} has version {found.v}, and this Tidemark reads "
            f"{VERSION}. Start the Tidemark that wrote it, or {NEW_CHECKPOINT}"
        )
    for field, setting in SETTING_OF.items():
        before, now = getattr(found, field), getattr(wanted, field)
        if before != now:
            way_out = f"follow {PROCEDURE}." if field == "partitions" else NEW_CHECKPOINT
            raise ConfigError(
                f"the checkpoint {checkpoint} was started with {field} = {before}, "
                f"the configuration ({setting}) now gives {now}. Set it back, or {way_out}"
            )


class CheckpointFolder:
    """A checkpoint's folder on Hadoop's file systems. Its methods raise TidemarkError."""

    def __init__(self, jvm: Any, hadoop_configuration: Any, checkpoint: str) -> None:
        """`jvm` is py4j's view of the driver's JVM."""
        self.checkpoint = checkpoint
        self._jvm = jvm
        with checkpoint_errors("read", checkpoint):
            self._folder = self._path(checkpoint)
            self._files = self._folder.getFileSystem(hadoop_configuration)

    def fixed_settings(self) -> FixedSettings | None:
        """What `tidemark.json` holds; None without one."""
        with checkpoint_errors("read", self.checkpoint):
            path = self._path(self._folder, FILE)
            data = _read(self._jvm, self._files, path) if self._files.exists(path) else None
        return None if data is None else decode_fixed_settings(data, self.checkpoint)

    def is_used(self) -> bool:
        """Whether a query has begun in it, also where one of Spark's files is lost."""
        with checkpoint_errors("read", self.checkpoint):
            paths = [self._path(self._folder, name) for name in ("metadata", "offsets")]
            return any(bool(self._files.exists(path)) for path in paths)

    def write(self, fixed: FixedSettings) -> None:
        self._write(FILE, json.format(json.encode(fixed)) + b"\n")

    def batches(self) -> tuple[int, int]:
        """The newest batch that was planned and the newest that was committed; -1: none."""
        return self._newest("offsets"), self._newest("commits")

    def planned_offsets(self, batch: int) -> str:
        """The Kafka offsets up to which a batch reads, in Spark's JSON."""
        return self._plan(batch)[-1]

    def begin_again(self, topic: str, starts: Mapping[int, int]) -> None:
        """Has the batch after the next one begin at `starts`; the next one reads nothing.

        Only while no query runs. It is planned as Spark does it: the last line of its file in
        `offsets` says where it ends, and a batch that ends before its start has no records.
        """
        planned, committed = self.batches()
        if planned >= 0:
            offsets = json.encode({topic: {str(number): at for number, at in starts.items()}})
            lines = [*self._plan(planned)[:-1], offsets.decode()]
            self._write(f"offsets/{committed + 1}", "\n".join(lines).encode())

    def _plan(self, batch: int) -> list[str]:
        with checkpoint_errors("read", self.checkpoint):
            path = self._path(self._folder, f"offsets/{batch}")
            return _read(self._jvm, self._files, path).splitlines()

    def _write(self, name: str, data: bytes) -> None:
        """By a rename: a start that is killed here leaves no file or a whole one."""
        with checkpoint_errors("write", self.checkpoint):
            path, draft = (self._path(self._folder, each) for each in (name, f".{FILE}.draft"))
            self._files.mkdirs(self._folder)
            with closing(self._files.create(draft, True)) as stream:
                stream.write(bytearray(data))
            if self._files.exists(path):
                self._files.delete(path, False)
            if not self._files.rename(draft, path):
                raise OSError(f"{name} could not be renamed into place")

    def _newest(self, name: str) -> int:
        with checkpoint_errors("read", self.checkpoint):
            folder = self._path(self._folder, name)
            if not self._files.exists(folder):
                return -1
            names = [str(status.getPath().getName()) for status in self._files.listStatus(folder)]
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _path(self, *parts: Any) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(*parts)


def open_checkpoint(spark: SparkSession, settings: Settings) -> CheckpointFolder | None:
    """The folder of stream.checkpoint, which agrees with the settings.

    None, with a warning, where PySpark gives no way to it. Raises ConfigError or TidemarkError.
    """
    found = hadoop(spark)
    if found is None:
        log.warning(
            "the checkpoint is not checked: this PySpark gives no way to Hadoop's file systems",
            missing="whether the configuration agrees with it, and which records ended a batch",
            cure="install the version of PySpark that Tidemark names",
        )
        return None
    folder = CheckpointFolder(*found, settings.stream.checkpoint)
    fix_settings(folder, fixed_settings(settings))
    return folder


def fix_settings(folder: CheckpointFolder, wanted: FixedSettings) -> None:
    """Writes `tidemark.json` at the first start, checks it at every later one.

    Raises ConfigError or TidemarkError.
    """
    found = folder.fixed_settings()
    if found is not None:
        check_fixed_settings(found, wanted, folder.checkpoint)
        return
    if folder.is_used():
        raise ConfigError(
            f"the checkpoint {folder.checkpoint} has no {FILE}: the file is lost, or the folder "
            "belongs to another query. Restore the file, or the whole folder, from a copy; or set "
            "stream.checkpoint to a new folder. The state is then built again from the events "
            "that the topic still holds."
        )
    folder.write(wanted)


def _read(jvm: Any, files: Any, path: Any) -> str:
    with closing(files.open(path)) as stream:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))


def decode_fixed_settings(data: str, checkpoint: str) -> FixedSettings:
    """The content of a checkpoint's `tidemark.json`. Raises ConfigError."""
    try:
        return json.decode(data, type=FixedSettings)
    except DecodeError as error:
        raise ConfigError(
            f"{checkpoint}/{FILE} cannot be read: {error}. "
            "Restore it from a copy, or set stream.checkpoint to a new folder."
        ) from None


@contextmanager
def checkpoint_errors(verb: str, checkpoint: str) -> Iterator[None]:
    """Makes a TidemarkError of any error, on one line; of py4j's with Java's own message.

    A JVM that does not answer says nothing of the checkpoint: `spark_errors` has the words for it.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        yield
    except Exception as error:
        if isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError):
            raise
        java = getattr(error, "java_exception", None)
        text = str(java.toString()) if java is not None else str(error)
        raise TidemarkError(
            f"cannot {verb} the checkpoint {checkpoint}: {' '.join(text.split())[:300]}. "
            "Check stream.checkpoint and the rights on it."
        ) from None
