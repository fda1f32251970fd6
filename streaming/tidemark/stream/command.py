"""`tidemark stream`: starts the query, waits, and ends it well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click
import structlog

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.kafka import ensure_topics
from tidemark.logs import configure_logs
from tidemark.settings import Settings, load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# SIGTERM to the end of the process: the batch in flight may take the first part, stopping Spark the rest.
FINISH_SECONDS: Final = 5.0
GONE_SECONDS: Final = 9.0
POLL_SECONDS: Final = 0.2

log = structlog.get_logger()


@click.command("stream")
@click.option("--config", "config", type=click.Path(path_type=Path), envvar="TIDEMARK_CONFIG", help="The configuration file.")
@click.option("--checkpoint", help="Where the query keeps its progress and state (stream.checkpoint); any Hadoop file system.")
@click.option("--once", is_flag=True, help="Work off what the topic holds now, then end.")
def stream(config: Path | None, checkpoint: str | None, once: bool) -> None:
    """Folds events into views and alerts with Spark Structured Streaming."""
    settings = load_settings(config, overrides={"stream.checkpoint": checkpoint})
    configure_logs(settings.log_format)
    run(settings, once)


def main() -> None:
    """The verb alone, as `python -m tidemark.stream` and spark-submit start it. Ends the process: exit 0, 1 or 2."""
    try:
        stream.main(prog_name="tidemark stream", standalone_mode=False)
    except TidemarkError as error:
        click.echo(f"tidemark stream: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(1)


def run(settings: Settings, once: bool = False) -> None:
    """Runs the query until SIGTERM or SIGINT (returns), its end (`once`), or its failure (raises TidemarkError)."""
    stop = threading.Event()
    with stopping(stop):
        check_packages()
        ensure_topics(settings.kafka, settings.topics)
        from tidemark.stream.frozen import freeze, frozen_by
        from tidemark.stream.listener import Listener, Metrics, serve_metrics
        from tidemark.stream.session import start_session

        metrics = Metrics()
        if settings.stream.listen is not None:
            serve_metrics(metrics, settings.stream.listen)
        if stop.is_set():
            return
        spark = start_session(settings, os.environ)
        # Again: PySpark has put its own handler of SIGINT in place.
        with ended(spark), stopping(stop):
            if stop.is_set():
                return
            context: Any = spark.sparkContext
            hadoop = context._jsc.hadoopConfiguration()  # noqa: SLF001 - PySpark has no public way to Hadoop's file systems
            freeze(context._jvm, hadoop, settings.stream.checkpoint, frozen_by(settings))  # noqa: SLF001
            spark.streams.addListener(Listener(metrics))
            watch(_start(spark, settings, once), stop)


def check_packages() -> None:
    """Raises ConfigError when what only this verb needs is not installed."""
    try:
        import pandas  # noqa: F401, ICN001
        import pyarrow  # noqa: F401, ICN001
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"the stream needs {error.name}, which is not installed. Install it: pip install 'tidemark[stream]'.") from None


def _start(spark: SparkSession, settings: Settings, once: bool) -> StreamingQuery:
    from pyspark.errors import PySparkException

    from tidemark.stream.job import start_query
    from tidemark.stream.session import first_line

    try:
        return start_query(spark, settings, once)
    except PySparkException as error:
        raise TidemarkError(f"the query did not start: {first_line(error)}.") from None


def watch(query: StreamingQuery, stop: threading.Event) -> None:
    """Returns when the query ended or was stopped after its batch. Raises TidemarkError when it failed."""
    from tidemark.stream.session import first_line

    while query.isActive and not stop.wait(POLL_SECONDS):
        pass
    if query.isActive:
        finish_batch(query)
        return
    failure = query.exception()
    if failure is not None:
        raise TidemarkError(f"the query failed: {first_line(failure)}. It goes on from its checkpoint when started again.")


def finish_batch(query: StreamingQuery) -> None:
    """Stops the query between two batches, or inside one that takes too long: that one is done again at the next start."""
    progress = query.lastProgress
    deadline = time.monotonic() + FINISH_SECONDS
    while query.status["isTriggerActive"] and time.monotonic() < deadline:
        if query.lastProgress != progress:
            break
        time.sleep(0.02)
    query.stop()


@contextmanager
def stopping(stop: threading.Event) -> Iterator[None]:
    """SIGTERM and SIGINT set `stop`; the process is gone `GONE_SECONDS` later even if Spark hangs."""

    def request(_number: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            stop.set()
            threading.Thread(target=_leave_anyhow, daemon=True).start()

    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, request) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave_anyhow() -> None:
    time.sleep(GONE_SECONDS)
    sys.stderr.write("tidemark stream: Spark did not stop in time; the checkpoint holds every finished batch.\n")
    sys.stderr.flush()
    # The JVM goes with us: it reads the end of its standard input.
    os._exit(1)


@contextmanager
def ended(spark: SparkSession) -> Iterator[None]:
    """Stops Spark and its JVM at the end, whatever happened."""
    gateway: Any = getattr(spark.sparkContext, "_gateway")  # noqa: B009 - the only way to the JVM's process
    process = getattr(gateway, "proc", None)
    try:
        yield
    finally:
        try:
            spark.stop()
        except Exception as error:
            log.warning("Spark did not stop cleanly", error=f"{type(error).__name__}: {error}")
        if process is not None:
            gateway.shutdown()
            process.stdin.close()
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                process.kill()
