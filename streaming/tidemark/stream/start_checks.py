"""What a start of the stream needs, checked before Kafka is asked and Java starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings
from tidemark.stream.kafka_options import sink_options, source_options
from tidemark.stream.session import is_local, is_submitted, local_folder

# Where they are set, Hadoop may have another default file system than this machine's.
HADOOP: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "HADOOP_HOME", "SPARK_CONF_DIR")


def check_start(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raises ConfigError."""
    check_client(settings)
    check_checkpoint(settings, environ)


def check_client(settings: Settings) -> None:
    """Raises ConfigError for an option of kafka.client that Spark's Kafka client cannot take."""
    source_options(settings.kafka, settings.stream)
    sink_options(settings.kafka, settings.stream)


def check_checkpoint(settings: Settings, environ: Mapping[str, str]) -> None:
    """Raises ConfigError where stream.checkpoint is, or is in, something that is no folder."""
    folder = _folder(settings, environ)
    if folder is None:
        return
    for path in (folder, *folder.absolute().parents):
        try:
            usable = path.is_dir() or not path.exists()
        except OSError:
            # Another user's: Hadoop names it.
            return
        if not usable:
            raise ConfigError(
                f"configuration: stream.checkpoint: {path} is a file; give a folder, which a first "
                "start creates."
            )


def _folder(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """The folder on this machine; None: the checkpoint is, or may be, elsewhere."""
    checkpoint = settings.stream.checkpoint
    elsewhere = (
        is_submitted(environ)
        or not is_local(settings.stream.master)
        or "spark.hadoop.fs.defaultFS" in settings.stream.spark
        or any(name in environ for name in HADOOP)
    )
    if elsewhere and not checkpoint.lower().startswith("file:"):
        return None
    return local_folder(checkpoint)
