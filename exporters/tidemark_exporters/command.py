"""`tidemark export`: metrics, the status page with its API, and delivery of alerts."""

from __future__ import annotations

from pathlib import Path

import click

from tidemark.command_line.options import config_option, load_long_running, log_options
from tidemark.command_line.output import echo
from tidemark.command_line.signals import stop_on_signal
from tidemark.core.errors import ConfigError


@click.command("export", help="Serve metrics, the status page and its API, and deliver alerts.")
@config_option
@log_options
@click.option("--no-notify", is_flag=True, help="Metrics and status page only: deliver no alert.")
@click.option(
    "--only-notify",
    is_flag=True,
    help="Delivery and status page only: /metrics has the exporter's own metrics.",
)
@click.option(
    "--dry-run-notify",
    is_flag=True,
    help="Print what would be sent now, by receiver, and exit. Sends and commits nothing.",
)
@click.option(
    "--shadow",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Append what would be sent to FILE instead of sending it, for `tidemark replay --weeks`.",
)
@click.option("--json", "as_json", is_flag=True, help="With --dry-run-notify: one JSON object.")
def export(
    config: Path | None,
    no_notify: bool,
    only_notify: bool,
    dry_run_notify: bool,
    shadow: Path | None,
    as_json: bool,
) -> None:
    """Runs until SIGTERM or SIGINT, and ends within 10 s of it.

    Raises ConfigError (exit 2), ClusterError and TidemarkError (exit 1), one line each.
    """
    given = {"--only-notify": only_notify, "--dry-run-notify": dry_run_notify, "--shadow": shadow}
    notifying = next((name for name, value in given.items() if value), None)
    if no_notify and notifying:
        raise ConfigError(f"--no-notify and {notifying} leave nothing to do; give one of them.")
    if as_json and not dry_run_notify:
        raise ConfigError("--json needs --dry-run-notify.")
    settings = load_long_running(config)
    if notifying and not settings.notify.routes:
        raise ConfigError(
            f"{notifying}: the configuration has no receivers; list them under notify.receivers "
            "or notify.alertmanagers."
        )
    if dry_run_notify:
        from tidemark_exporters.notify.dry_run import dry_run

        dry_run(settings, echo, as_json=as_json)
        return
    # Now and not with the first signed post: cli names the extra that it belongs to.
    import standardwebhooks  # noqa: F401

    # The client libraries load slowly: only once the configuration is known to be right.
    from tidemark.garbage_collector import collect_seldom, freeze_heap
    from tidemark_exporters.process import Exporter

    collect_seldom()
    stop = stop_on_signal()
    exporter = Exporter(
        settings,
        serve_metrics=not only_notify,
        notify=not no_notify,
        shadow=shadow,
        on_ready=freeze_heap,
    )
    exporter.start()
    try:
        exporter.wait(stop)
    finally:
        exporter.stop()
