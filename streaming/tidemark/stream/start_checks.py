"""What a start of the stream needs, before Kafka is asked and Java starts.

A second stream waits for its turn, until the first one is gone: both share the checkpoint. Each
batch writes a file to the checkpoint's `offsets`. Collectors send passes all the time, so that a
stream that runs writes one at least every few seconds. Where two wrote the same batch, Spark ends
the one that was late; started again as a standby, it waits.
"""

from __future__ import annotations

import os
import pwd
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import structlog

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings
from tidemark.stream.kafka_options import sink_options, source_options
from tidemark.stream.session import is_local, is_submitted, local_folder, master_of, tasks_at_once

# Four batches of a large cluster. With a start of Spark, it folds again within 60 s.
UNCHANGED_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 1.0

log = structlog.get_logger()

# Where they are set, Hadoop may have another default file system than this machine's.
HADOOP: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "HADOOP_HOME", "SPARK_CONF_DIR")
# From this pyarrow on, a PySpark before this one fails (`check_arrow`).
BROKEN_BY_PYARROW: Final = (26,)
FIXED_BY_PYSPARK: Final = (4, 2)


def wait_for_turn(
    settings: Settings, stop: threading.Event, clock: Callable[[], float] = time.monotonic
) -> None:
    """Returns once no stream has written to the checkpoint for a while, or after `stop`.

    Raises ConfigError where the checkpoint is not in a folder of this machine.
    """
    folder = local_folder(settings.stream.checkpoint)
    if folder is None:
        raise ConfigError(
            f"--standby: {settings.stream.checkpoint} is no folder of this machine. Mount it on "
            "both, or leave one stream to the scheduler of the cluster, which starts it again."
        )
    log.info("standby: waits until no stream writes", checkpoint=str(folder))
    newest, since = _newest_batch(folder), clock()
    while clock() - since < UNCHANGED_SECONDS:
        if stop.wait(LOOK_SECONDS):
            return
        if (found := _newest_batch(folder)) != newest:
            newest, since = found, clock()
    log.info("standby: takes over", checkpoint=str(folder), batch=newest)


def _newest_batch(folder: Path) -> int | None:
    """Its number; None where there is none, or the folder cannot be read now."""
    with suppress(OSError):
        names = [path.name for path in (folder / "offsets").iterdir()]
        return max((int(name) for name in names if name.isdecimal()), default=None)
    return None


def check_start(settings: Settings, environ: Mapping[str, str]) -> None:
    """Also makes a checkpoint on this machine its user's alone. Raises ConfigError."""
    check_user(environ)
    check_arrow()
    check_client(settings)
    folder = check_checkpoint(settings, environ)
    # Another user's: Hadoop names it.
    with suppress(OSError):
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)


def check_user(environ: Mapping[str, str]) -> None:
    """Raises ConfigError for a user id without a name, as containers may have: Java would end."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        if not is_submitted(environ):
            raise ConfigError(
                f"the user id {os.geteuid()} has no name, and Spark does not start without one. "
                "Add a line for it to /etc/passwd, or run as a user who has one."
            ) from None


def check_arrow(version_of: Callable[[str], str] = version) -> None:
    """Raises ConfigError for a pyarrow from which PySpark reads floats where it needs integers.

    Not of packages that spark-submit brings, whose versions are not known.
    """
    # ApplyInPandasWithStateSerializer.load_stream.
    with suppress(PackageNotFoundError):
        installed = [version_of(name) for name in ("pyspark", "pyarrow")]
        spark, arrow = (tuple(map(int, re.findall(r"\d+", text))) for text in installed)
        if spark < FIXED_BY_PYSPARK and arrow >= BROKEN_BY_PYARROW:
            raise ConfigError(
                f"PySpark {installed[0]} cannot read its states with pyarrow {installed[1]}. "
                f"Install PySpark 4.2, or 'pyarrow<{BROKEN_BY_PYARROW[0]}'."
            )


def port_warnings(settings: Settings) -> Iterator[str]:
    """Of a Spark in several processes, whose ports are not on loopback alone."""
    stream, master = settings.stream, master_of(settings.stream)
    if tasks_at_once(master) is None and stream.spark.get("spark.authenticate") != "true":
        yield (
            f"stream.spark: spark.authenticate is not true for {master}: who reaches the "
            "ports of the driver or an executor reads its blocks, with Kafka's passwords, and runs "
            "code there. Set it, with a secret where the master makes none, or give it to "
            "spark-submit; add spark.network.crypto.enabled against readers of the network"
        )


def check_client(settings: Settings) -> None:
    """Raises ConfigError for an option of kafka.client that Spark's Kafka client cannot take."""
    source_options(settings.kafka, settings.stream)
    sink_options(settings.kafka, settings.stream)


def check_checkpoint(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """The folder of stream.checkpoint; None where it is not known to be on this machine.

    Raises ConfigError where that is, or is in, something that is no folder.
    """
    folder = _folder(settings, environ)
    # Another user's: Hadoop names it.
    with suppress(OSError):
        for path in () if folder is None else (folder, *folder.absolute().parents):
            if path.exists() and not path.is_dir():
                raise ConfigError(
                    f"configuration: stream.checkpoint: {path} is a file; give a folder, which a "
                    "first start creates."
                )
    return folder


def _folder(settings: Settings, environ: Mapping[str, str]) -> Path | None:
    """The folder on this machine; None: the checkpoint is, or may be, elsewhere."""
    checkpoint = settings.stream.checkpoint
    elsewhere = (
        is_submitted(environ)
        or not is_local(master_of(settings.stream))
        or "spark.hadoop.fs.defaultFS" in settings.stream.spark
        or any(name in environ for name in HADOOP)
    )
    if elsewhere and not checkpoint.lower().startswith("file:"):
        return None
    return local_folder(checkpoint)
