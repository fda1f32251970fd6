"""`tidemark stream`: starts the query, waits, and stops it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from functools import partial
from operator import call
from pathlib import Path
from typing import Final

import click

from tidemark.command_line.options import config_option, load_long_running, log_options
from tidemark.command_line.output import echo
from tidemark.command_line.signals import signals_call
from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.core.extras import missing_package
from tidemark.kafka.attempts import Attempts
from tidemark.kafka.topics import ensure_topics
from tidemark.reduce.rows import MAX_ROW_BYTES
from tidemark.settings import Settings
from tidemark.stream.event_topic import EventTopic
from tidemark.stream.failures import spark_errors
from tidemark.stream.health import ATTEMPT_SECONDS, START_SECONDS, StreamHealth
from tidemark.stream.query import Stop, ended, recover, watch
from tidemark.stream.session import prepare_java, start_session
from tidemark.stream.spark_internals import read_progress
from tidemark.stream.start import import_packages, start_worker
from tidemark.stream.start_checks import check_start, wait_for_turn
from tidemark.stream.step_over import step_over

RUN: Final = "to go on from the checkpoint"


@click.command("stream")
@config_option
@log_options
@click.option(
    "--checkpoint",
    help="Where the query keeps its progress and state (stream.checkpoint), on any Hadoop file "
    "system.",
)
@click.option("--once", is_flag=True, help="Process what the topic holds now, then end.")
@click.option(
    "--prepare",
    is_flag=True,
    help="Only fetch the jars of Spark's Kafka connector, where they are not there yet.",
)
@click.option(
    "--standby",
    is_flag=True,
    help="Wait until no other stream has written to the checkpoint for 20 s, then take over.",
)
def stream(
    config: Path | None, checkpoint: str | None, once: bool, prepare: bool, standby: bool
) -> None:
    """Fold events into views and alerts with Spark Structured Streaming."""
    if prepare and (once or standby):
        raise ConfigError("--prepare runs no query; leave out --once and --standby.")
    settings = load_long_running(config, flags={"stream.checkpoint": checkpoint})
    if prepare:
        jars = prepare_java(settings)
        echo(f"Spark's Kafka connector: {len(jars)} jars in {jars[0].parent}")
        return
    run(settings, once, standby)


def main() -> None:
    """The verb alone, for `python -m tidemark.stream` and spark-submit. Exit codes 0, 1 and 2."""
    try:
        try:
            stream.main(prog_name="tidemark stream", standalone_mode=False)
        except ModuleNotFoundError as error:
            raise missing_package("stream", error) from None
    except TidemarkError as error:
        echo(f"tidemark stream: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(1)


def run(settings: Settings, once: bool = False, standby: bool = False) -> None:
    """Runs the query until SIGTERM, SIGINT or, with `once`, its end.

    Raises TidemarkError when the query fails, ConfigError before anything is asked or started.
    """
    check_start(settings, os.environ)
    stop = Stop()
    # py4j logs a lost JVM with a traceback to the root logger, beside the error that it raises.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    with signals_call(stop.request):
        import_packages()
        from tidemark.stream.checkpoint import open_checkpoint
        from tidemark.stream.job import start_query
        from tidemark.stream.listener import Listener, StreamMetrics, progress_event

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
        if standby:
            wait_for_turn(settings, stop.requested)
        if stop.requested.is_set():
            return
        with health.step("the start of Spark", START_SECONDS):
            spark = start_session(settings, os.environ)
        # Again: PySpark has installed its own SIGINT handler.
        with ended(spark, stop), signals_call(stop.request), spark_errors(options.checkpoint):
            if stop.requested.is_set():
                return
            start_worker(spark)
            with health.step("opening the checkpoint", START_SECONDS):
                folder = open_checkpoint(spark, settings)
                read_progress(progress_event)
                spark.streams.addListener(Listener(metrics, health.moved))
            topic = EventTopic(
                settings,
                folder,
                metrics.registry.counter("tidemark_stream_replaced_topics_total").inc,
            )
            threading.Thread(target=topic.keep_looking, args=(stop.requested,), daemon=True).start()
            timed = partial(health.timed, "the check of the last batch", ATTEMPT_SECONDS)
            check, pass_by = timed(topic.check), timed(partial(step_over, settings, folder))
            max_row_bytes = MAX_ROW_BYTES
            while not stop.requested.is_set():
                attempt(check)
                attempt(pass_by)
                health.started()
                query = start_query(spark, settings, once, max_row_bytes)
                try:
                    outage = watch(
                        query,
                        stop.requested,
                        options.checkpoint,
                        restart=not once,
                        topic=None if once else topic,
                    )
                except TidemarkError as error:
                    max_row_bytes = recover(error, max_row_bytes, partial(attempt, pass_by))
                    continue
                if health.has_moved:
                    runs.succeeded()
                health.ended()
                if outage is None:
                    return
                stop.requested.wait(runs.failed(outage))
