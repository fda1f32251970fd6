"""`tidemark top`: a cluster in the terminal, by one process without Spark and without topics."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from tidemark.command_line.options import (
    FiniteRange,
    bootstrap_option,
    cluster_option,
    command_config_option,
    config_option,
    load_long_running,
    log_options,
)
from tidemark.command_line.output import echo
from tidemark.command_line.signals import signals_call
from tidemark.core.errors import ConfigError
from tidemark.garbage_collector import collect_seldom
from tidemark.observations.few_passes import live_cluster
from tidemark.observations.recorded_lines import STDIN
from tidemark.settings import Settings, parse_address
from tidemark.verbs.top.live import LiveCluster, Recorder
from tidemark.verbs.top.plain import block
from tidemark.verbs.top.recorded import SHIPPED, RecordedCluster
from tidemark.verbs.top.session import Messages, Source, run_session
from tidemark.verbs.top.snapshot import Snapshot

# After the user quits: for the pass under way.
PASS_SECONDS: Final = 4.0
POLL_SECONDS: Final = 0.1
# The first block waits for this pass, which has what the first one only asked for.
FIRST_PASS: Final = 2


@click.command("top")
@config_option
@command_config_option
@bootstrap_option
@cluster_option
@click.option(
    "--listen", metavar="HOST:PORT", help="Also serve the status page, /metrics and the API."
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also append the events to a file for `tidemark replay`; gzipped if it ends in .gz.",
)
@click.option("--from", "source", metavar="FILE|-", help="Show a recording instead.")
@click.option(
    "--recording",
    "shipped",
    type=click.Choice(list(SHIPPED)),
    help="Show a recording that comes with Tidemark.",
)
@click.option(
    "--every",
    type=FiniteRange(0.1, 86_400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Without a terminal: the time between two blocks of text.",
)
@click.option("--passes", type=click.IntRange(min=1), help="End after this many passes.")
@click.option("--plain", is_flag=True, help="Blocks of text on a terminal, too.")
@log_options
def top(
    config: Path | None,
    command_config: Path | None,
    bootstrap: str | None,
    name: str | None,
    listen: str | None,
    record: Path | None,
    source: str | None,
    shipped: str | None,
    every: float,
    passes: int | None,
    plain: bool,
) -> None:
    """Watch a cluster in the terminal: brokers, partitions, in-sync sets, alerts, elections.

    Needs only brokers: no Spark, no topics, no configuration. Press ? for the keys. Written to a
    pipe, it prints a block of text every few seconds.

    It runs the collector and the detectors in one process, for up to 20,000 partitions. It sends
    no notification and keeps nothing over a restart: `tidemark collect`, `stream` and `export` do.
    """
    collect_seldom()
    settings = load_long_running(config, command_config)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    is_screen = is_terminal and not plain and os.environ.get("TERM", "") != "dumb"
    if shipped is not None:
        if source is not None:
            raise ConfigError("--from and --recording both name a recording; give one of them.")
        source = str(SHIPPED[shipped])
    if source is not None:
        if bootstrap or record or passes:
            raise ConfigError(
                "--from and --recording show a recording; leave out --bootstrap, --record and "
                "--passes."
            )
        if source == STDIN and is_screen:
            raise ConfigError("the keys come from standard input; give a file, or --plain.")
        _play(settings, source, name, listen, every, is_screen=is_screen)
        return
    _watch(settings, bootstrap, name, listen, record, every, passes, is_screen=is_screen)


def _play(
    settings: Settings,
    source: str,
    name: str | None,
    listen: str | None,
    every: float,
    *,
    is_screen: bool,
) -> None:
    """Shows a recording; with `listen` until the user quits or a signal."""
    if listen is not None:
        parse_address(listen, "--listen")
    messages, pages = Messages(), "" if listen is None else f"http://{listen}"
    recorded = RecordedCluster(source, settings.detect, name, pages)
    if is_screen:
        messages.take_over_logs()
    with ExitStack() as stack:
        if listen is not None:
            from tidemark.verbs.top.site import RecordedSite

            stack.callback(RecordedSite(settings, recorded, listen).close)
        _show(recorded, every, is_screen=is_screen, messages=messages)


def _watch(
    settings: Settings,
    bootstrap: str | None,
    name: str | None,
    listen: str | None,
    record: Path | None,
    every: float,
    passes: int | None,
    *,
    is_screen: bool,
) -> None:
    """Watches a live cluster until the user quits, a signal, or the last pass."""
    messages = Messages()
    if is_screen:
        messages.take_over_logs()
    if listen is not None:
        parse_address(listen, "--listen")
    recorder = None if record is None else Recorder(record)
    cluster = live_cluster(settings, bootstrap, name)
    pages = "" if listen is None else f"http://{listen}"
    live = LiveCluster(cluster, settings, recorder, passes, pages)
    if listen is not None:
        # It needs the packages of the exporter.
        from tidemark.verbs.top.site import TopSite

        live.site = TopSite(settings, cluster.name, listen, live.metrics)
    live.start()
    try:
        _show(live, every, is_screen=is_screen, messages=messages)
    finally:
        live.close(PASS_SECONDS)


def _show(source: Source, every: float, *, is_screen: bool, messages: Messages) -> None:
    """Shows a cluster until the user quits, or until SIGTERM or SIGINT."""
    stop = threading.Event()
    if not is_screen:
        with signals_call(stop.set):
            if isinstance(source, LiveCluster):
                _print_blocks(source, every, stop)
                return
            echo("\n".join(block(source.snapshot, 0.0)) + "\n")
            if source.site is not None:
                stop.wait()
        return
    from tidemark.verbs.top.terminal import Terminal

    terminal = Terminal()

    def end() -> None:
        stop.set()
        terminal.wake()

    if isinstance(source, LiveCluster):
        source.on_pass = terminal.wake
    with signals_call(end), terminal:
        run_session(terminal, source, messages, stop)


def _print_blocks(source: LiveCluster, every: float, stop: threading.Event) -> None:
    """A block for the newest pass every few seconds, and one for the last pass."""
    since = next_at = 0.0
    printed: Snapshot | None = None
    while True:
        is_last = not source.is_running or stop.is_set()
        shown, now = source.snapshot, time.monotonic()
        is_due = now >= next_at and shown is not None and shown.passes >= FIRST_PASS
        if shown is not None and shown is not printed and (is_due or is_last):
            echo("\n".join(block(shown, since)) + "\n")
            printed, since, next_at = shown, shown.at, now + every
        if is_last:
            return
        stop.wait(POLL_SECONDS)
