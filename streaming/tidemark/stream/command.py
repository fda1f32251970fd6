"""`tidemark stream`: starts the query, waits, and stops it."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from operator import call
from pathlib import Path
from typing import Any, Final

import click

from tidemark.command_line.options import config_option, load_long_running, log_options
from tidemark.core.errors import TidemarkError
from tidemark.core.extras import missing_package
from tidemark.kafka.attempts import Attempts
from tidemark.kafka.topics import ensure_topics
from tidemark.settings import Settings
from tidemark.stream import prepare as preparation
from tidemark.stream.failures import spark_errors
from tidemark.stream.health import (
    ATTEMPT_SECONDS,
    START_SECONDS,
    TAKE_OVER_SECONDS,
    StreamHealth,
)
from tidemark.stream.query import watch
from tidemark.stream.session import start_session
from tidemark.stream.start import import_packages, start_worker
from tidemark.stream.start_checks import check_start
from tidemark.stream.step_over import step_over
from tidemark.stream.stopping import Stop, ended

RUN: Final = "to go on from the checkpoint"


@click.command("stream")
@config_option
@log_options
@click.option(
    "--checkpoint",
    help="Where the query keeps its progress and state (stream.checkpoint), on any Hadoop file "
    "system.",
)
@click.option(
    "--from-checkpoint",
    metavar="CHECKPOINT",
    help="First take over the state of another checkpoint into stream.checkpoint, a new folder. "
    "topics.partitions and stream.store_provider may differ.",
)
@click.option("--once", is_flag=True, help="Process what the topic holds now, then end.")
@click.option(
    "--prepare",
    is_flag=True,
    help="Only fetch the connector's jars and archive Spark's classes, so that each later start of "
    "a local run is shorter.",
)
def stream(
    config: Path | None,
    checkpoint: str | None,
    from_checkpoint: str | None,
    once: bool,
    prepare: bool,
) -> None:
    """Fold events into views and alerts with Spark Structured Streaming."""
    settings = load_long_running(config, flags={"stream.checkpoint": checkpoint})
    if prepare:
        click.echo(preparation.prepare(settings))
        return
    run(settings, once, from_checkpoint)


def main() -> None:
    """The verb alone, for `python -m tidemark.stream` and spark-submit. Exit codes 0, 1 and 2."""
    try:
        try:
            stream.main(prog_name="tidemark stream", standalone_mode=False)
        except ModuleNotFoundError as error:
            raise missing_package("stream", error) from None
    except TidemarkError as error:
        click.echo(f"tidemark stream: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(1)


def run(settings: Settings, once: bool = False, source: str | None = None) -> None:
    """Runs the query until SIGTERM, SIGINT or, with `once`, its end.

    With `source`, it first takes over the state of that checkpoint, unless an earlier start did.
    Raises TidemarkError when the query fails, ConfigError before anything is asked or started.
    """
    check_start(settings, os.environ, source)
    stop = Stop()
    # py4j logs a lost JVM with a traceback to the root logger, beside the error that it raises.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    with stop.on_signals():
        import_packages()
        from tidemark.stream.checkpoint import (
            CheckpointFolder,
            fix_settings,
            fixed_settings,
            may_hold_rocksdb,
        )
        from tidemark.stream.from_checkpoint import take_over
        from tidemark.stream.job import start_query
        from tidemark.stream.listener import Listener, StreamMetrics, read_progress_as_json

        metrics, topics, runs = StreamMetrics(), Attempts("to use its topics"), Attempts(RUN)
        metrics.registry.describe_process("stream")
        health, options = StreamHealth(topics, runs), settings.stream
        if options.listen is not None:
            metrics.registry.serve(options.listen, "stream.listen", options.web_config_file, health)
        attempt = call if once else partial(topics.run, stopped=stop.requested)
        prepare = health.timed(
            "the check of the topics",
            ATTEMPT_SECONDS,
            partial(ensure_topics, settings.kafka, settings.topics),
        )
        attempt(prepare)
        if stop.requested.is_set():
            return
        reads_rocksdb = source is not None and may_hold_rocksdb(source)
        with health.step("the start of Spark", START_SECONDS):
            spark = start_session(settings, os.environ, reads_rocksdb)
        # Again: PySpark has installed its own SIGINT handler.
        with ended(spark, stop), stop.on_signals(), spark_errors(options.checkpoint):
            if stop.requested.is_set():
                return
            start_worker(spark)
            context: Any = spark.sparkContext
            # PySpark has no public way to Hadoop's file systems.
            jvm, hadoop = context._jvm, context._jsc.hadoopConfiguration()  # noqa: SLF001
            folder = CheckpointFolder(jvm, hadoop, options.checkpoint)
            if source is not None:
                source_folder = CheckpointFolder(jvm, hadoop, source)
                with health.step("taking over the state", TAKE_OVER_SECONDS):
                    take_over(spark, settings, source_folder, folder, stop.requested)
            with health.step("opening the checkpoint", START_SECONDS):
                fix_settings(folder, fixed_settings(settings))
                read_progress_as_json()
                spark.streams.addListener(Listener(metrics, health.moved))
            check = health.timed(
                "the check of the last batch",
                ATTEMPT_SECONDS,
                partial(step_over, settings, folder),
            )
            while not stop.requested.is_set():
                attempt(check)
                health.started()
                query = start_query(spark, settings, once)
                outage = watch(query, stop.requested, options.checkpoint, restart=not once)
                if health.has_moved():
                    runs.succeeded()
                health.ended()
                if outage is None:
                    return
                stop.requested.wait(runs.failed(outage))
                attempt(prepare)
