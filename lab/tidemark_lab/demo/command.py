"""`tidemark demo`: starts everything, runs the scenes, judges, and leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import click

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.jvm.jars import connector_jars
from tidemark.jvm.java import find_java
from tidemark.kafka.client_log import quiet_client_logs
from tidemark.settings.forms import url_problem
from tidemark_lab.brokers.jars import broker_jars
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.demo.alert_result import AlertResult, failures, latency_remarks
from tidemark_lab.demo.live_table import LiveTable
from tidemark_lab.demo.report import Report
from tidemark_lab.demo.schedule import DEMO, WATCHED, steps_of
from tidemark_lab.demo.services import Services
from tidemark_lab.demo.watched import Watched
from tidemark_lab.drills.set_up import start_brokers
from tidemark_lab.drills.stage import Stage
from tidemark_lab.judge.expected import EXTRA_PASSES, EXTRA_SECONDS, UPDATE_SECONDS
from tidemark_lab.judge.loss_comparison import compare_loss

REPORT: Final = "demo-report.json"
# `collect`'s default up to 2,000 partitions.
PASS_SECONDS: Final = 1.0


@click.command("demo", help="Run faults on a real local cluster and show whether the alerts came.")
@click.option(
    "--keep",
    is_flag=True,
    help="Leave everything running after the scenes, print the addresses, end with Ctrl-C.",
)
@click.option(
    "--workdir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep logs, data and records here (default: a temporary folder).",
)
@click.option(
    "--jars",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Take Kafka's and the connector's jars from here.",
)
@click.option(
    "--alertmanager",
    metavar="URL",
    help="Also deliver to this Alertmanager, such as http://127.0.0.1:9093.",
)
def demo(keep: bool, workdir: Path | None, jars: Path | None, alertmanager: str | None) -> None:
    if alertmanager is not None:
        problem = url_problem(alertmanager)
        if problem is not None:
            raise ConfigError(f"--alertmanager: {problem}.")
    exit_on(signal.SIGTERM, signal.SIGHUP)
    folder = workdir or Path(tempfile.mkdtemp(prefix="tidemark-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    reasons = _run(folder.absolute(), jars, keep, alertmanager)
    if reasons:
        raise TidemarkError(f"the demo failed: {'; '.join(reasons)}. Logs and records: {folder}")
    if workdir is None:
        shutil.rmtree(folder, ignore_errors=True)


class _Demo(NamedTuple):
    """What runs, and what it shows."""

    stage: Stage
    services: Services
    report: Report
    table: LiveTable


def _run(workdir: Path, jars: Path | None, keep: bool, alertmanager: str | None) -> list[str]:
    """Runs all scenes; returns the reasons for failure. Ends every process on the way out."""
    quiet_client_logs()
    with ExitStack() as stack:
        run = _set_up(stack, workdir, jars, alertmanager)
        for step in steps_of(run.report, run.services.own_topics):
            if step.text:
                run.table.say(step.text)
            step.act(run.stage)
        results = _judge(run)
        Path(REPORT).write_text(
            json.dumps([result.as_json() for result in results], indent=1) + "\n", encoding="utf-8"
        )
        run.table.finish(results)
        reasons = failures(results)
        _print_summary(run, results, reasons)
        if keep:
            _hold(run)
        return reasons


def _set_up(stack: ExitStack, workdir: Path, jars: Path | None, alertmanager: str | None) -> _Demo:
    table = LiveTable()
    stack.callback(table.stop)
    java = find_java()
    for reason in java.rejected:
        table.say(f"Java: passed over {reason}; using Java {java.major} of {java.source}")
    broker_jars(jars, java)
    connector = str(connector_jars(jars, java)[0].parent)
    table.say(
        f"starting one controller and three brokers with Java {java.major} ({java.source}); "
        f"work folder {workdir}"
    )
    brokers = start_brokers(stack, DEMO, workdir, workdir, jars=jars, java=java)
    cluster, probe = brokers.cluster, brokers.probe
    webhooks = stack.enter_context(WebhookReceiver())
    stack.callback(_write_deliveries, webhooks, workdir / "webhooks.jsonl")
    services = Services(cluster, workdir, webhooks.url, java, connector, alertmanager)
    services.create_topics()
    table.say("starting collect, stream and export; the load producer runs")
    stack.callback(services.stop)
    services.start()
    services.wait_ready()
    settings = services.settings
    seconds = settings.collect.pass_seconds or PASS_SECONDS
    report = Report(WATCHED, settings.detect.thresholds, seconds)
    product = Watched(services, webhooks, report, table)
    stage = Stage(cluster, brokers.load, product, DEMO.places(), probe=probe, topic=WATCHED)
    report.marks, report.first_seen = stage.marks, stage.first_seen
    return _Demo(stage, services, report, table)


def _judge(run: _Demo) -> list[AlertResult]:
    """Ends the load and compares the proven range with the producer's acknowledgements."""
    run.table.say("reading the disks, to compare the proven range with the producer's record")
    alerts, truth = run.stage.product.alerts(), run.stage.truth()
    proven = run.report.loss_range("proven", alerts)
    run.report.comparison = compare_loss(proven, truth, (WATCHED, 0))
    return run.report.results(alerts)


def _write_deliveries(webhooks: WebhookReceiver, file: Path) -> None:
    """One delivery a line: shows why an alert is late or missing."""
    lines = (json.dumps({"received_at": at, **payload}) for at, payload in webhooks.deliveries())
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _print_summary(run: _Demo, results: list[AlertResult], reasons: list[str]) -> None:
    run.table.print(
        "\n'page' = severity critical; s from detectable: since a probe apart from Tidemark first "
        "saw the condition."
    )
    run.table.print(
        f"Allowed: {EXTRA_PASSES} passes + {EXTRA_SECONDS:.0f} s + the detector's hysteresis "
        "(3 passes for states, 2 reads for loss); "
        f"{UPDATE_SECONDS:.0f} s more for what updates the message about a page."
    )
    if run.report.comparison is not None:
        run.table.print(f"Committed data loss: {run.report.comparison.text()}.")
    for remark in [*latency_remarks(results), *run.report.other_alerts(run.stage.product.alerts())]:
        run.table.print(remark[0].upper() + remark[1:] + ".")
    run.table.print(f"Written: {Path(REPORT).absolute()}")
    for reason in reasons:
        click.echo(f"FAILED: {reason}", err=True)
    run.table.say(
        f"{len(reasons)} failures" if reasons else "every expected alert came, and no other page"
    )


def _hold(run: _Demo) -> None:
    servers = ",".join(run.stage.cluster.bootstrap_servers)
    click.echo(f"Left running. Kafka: {servers}; configuration: {run.services.config}")
    for name, address in run.services.addresses().items():
        click.echo(f"  {name}: {address}")
    run.table.say("Ctrl-C ends everything")
    signal.pause()
