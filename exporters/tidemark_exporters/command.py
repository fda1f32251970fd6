"""`tidemark export`: metrics, the status page and its API, and delivery of alerts."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from tidemark.core.errors import ConfigError
from tidemark.logs import configure_logs
from tidemark.settings import load_settings


@click.command("export", help="Serve metrics, the status page and its API, and deliver alerts.")
@click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path),
    envvar="TIDEMARK_CONFIG",
    help="The YAML file; without one, defaults and environment.",
)
@click.option("--no-notify", is_flag=True, help="Deliver nothing: metrics and status page only.")
@click.option(
    "--only-notify",
    is_flag=True,
    help="Deliver only: /metrics shows the exporter itself; the status page is there.",
)
@click.option(
    "--dry-run-notify",
    is_flag=True,
    help="Show what would be sent to whom now, and end: nothing is sent, no offset committed.",
)
def export(config: Path | None, no_notify: bool, only_notify: bool, dry_run_notify: bool) -> None:
    """Runs until SIGTERM or SIGINT, and is gone 10 s after it.

    Raises ConfigError (exit 2), ClusterError and TidemarkError (exit 1), one line each.
    """
    if no_notify and (only_notify or dry_run_notify):
        raise ConfigError(
            f"--no-notify and {'--only-notify' if only_notify else '--dry-run-notify'} leave nothing to do; give one of them."
        )
    settings = load_settings(config)
    if only_notify and not settings.notify.routes:
        raise ConfigError(
            "--only-notify: the configuration has no receivers; list them under notify.receivers or notify.alertmanagers."
        )
    configure_logs(settings.log_format)
    if dry_run_notify:
        from tidemark_exporters.notify.dry_run import dry_run

        dry_run(settings, click.echo)
        return
    # The client libraries take a moment to load: after the configuration was found to be right.
    from tidemark_exporters.export.memory import settle
    from tidemark_exporters.process import Exporter

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    exporter = Exporter(
        settings, serve_metrics=not only_notify, notify=not no_notify, settle=settle
    )
    exporter.start()
    try:
        exporter.wait(stop)
    finally:
        exporter.stop()
