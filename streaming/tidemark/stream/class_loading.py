"""`python -m tidemark.stream.class_loading ARCHIVE CLASS_PATH JARS`: a short run of the query.

Its Java writes the classes that it has loaded into ARCHIVE when it ends; the run writes its class
path. It needs no Kafka: the query folds rows that Spark generates.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tidemark.core.errors import TidemarkError
from tidemark.settings import Settings, Stream
from tidemark.stream.class_archive import QUIET
from tidemark.stream.job import fold_events
from tidemark.stream.session import start_session
from tidemark.stream.start import import_packages, start_worker

BATCHES: Final = 3
SECONDS: Final = 240.0


def load_classes(archive: Path, class_path: Path, jars: str) -> None:
    """Runs the query for some batches, and waits until Java has ended. Raises TidemarkError."""
    import_packages()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(stream=Stream(checkpoint=f"{folder}/checkpoint", jars=jars))
        options = [QUIET, f"-XX:ArchiveClassesAtExit={archive}"]
        spark: Any = start_session(settings, os.environ, java_options=options)
        gateway = spark.sparkContext._gateway  # noqa: SLF001 - the only way to its Java
        class_path.write_text(gateway.jvm.System.getProperty("java.class.path"), encoding="utf-8")
        start_worker(spark)
        _fold(spark, settings)
        spark.stop()
        gateway.shutdown()
        # Java ends when its standard input does.
        gateway.proc.stdin.close()
        gateway.proc.wait(SECONDS)


def _fold(spark: Any, settings: Settings) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 8).load()
    events = rows.selectExpr(
        "CAST(NULL AS BINARY) AS key",
        "CAST('no event' AS BINARY) AS value",
        "CAST(value % 2 AS INT) AS partition",
        "value AS offset",
        "unix_millis(timestamp) AS timestamp_ms",
    )
    query = (
        fold_events(events.coalesce(2), settings)
        .writeStream.format("noop")
        .option("checkpointLocation", settings.stream.checkpoint)
        .outputMode("update")
        .start()
    )
    deadline = time.monotonic() + SECONDS
    while not query.awaitTermination(1):
        progress = query.lastProgress
        if progress is not None and progress["batchId"] >= BATCHES:
            break
        if time.monotonic() > deadline:
            raise TidemarkError(f"the query folded no batch within {SECONDS:.0f} s")
    query.stop()


if __name__ == "__main__":
    archive, class_path, jars = sys.argv[1:]
    load_classes(Path(archive), Path(class_path), jars)
