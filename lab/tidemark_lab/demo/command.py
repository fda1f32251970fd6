"""`tidemark demo`: starts everything, runs the scenes, judges, and leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.jvm.jars import connector_jars
from tidemark.jvm.java import find_java
from tidemark.kafka.client_log import quiet_client_logs
from tidemark.settings.forms import url_problem
from tidemark_lab.brokers.cluster import BROKERS, LocalCluster
from tidemark_lab.brokers.jars import broker_jars
from tidemark_lab.brokers.load_producer import LoadProducer, read_partitions
from tidemark_lab.brokers.probe import Probe
from tidemark_lab.brokers.receiver import WebhookReceiver
from tidemark_lab.brokers.signals import exit_on
from tidemark_lab.demo.alert_result import AlertResult, failures, latency_remarks
from tidemark_lab.demo.expected_alerts import (
    EXTRA_PASSES,
    EXTRA_SECONDS,
    FOLLOWER,
    LEADER,
    OWN_TOPICS_LEADER,
    UPDATE_SECONDS,
)
from tidemark_lab.demo.live_table import LiveTable
from tidemark_lab.demo.loss_comparison import compare_loss
from tidemark_lab.demo.report import Report
from tidemark_lab.demo.scenes import SCRIPT, DemoRun
from tidemark_lab.demo.services import WATCHED, Services

REPORT: Final = "demo-report.json"
LAG_TIME_MS: Final = "15000"
# The broker that leads Tidemark's own topics drops a silent follower sooner. Until it does, their
# high watermark does not move and no consumer reads past it. With the event topics on another
# cluster this is not needed.
OWN_TOPICS_LAG_TIME_MS: Final = "1000"
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


def _run(workdir: Path, jars: Path | None, keep: bool, alertmanager: str | None) -> list[str]:
    """Runs all scenes; returns the reasons for failure. Ends every process on the way out."""
    quiet_client_logs()
    with ExitStack() as stack:
        run = _set_up(stack, workdir, jars, alertmanager)
        for scene in SCRIPT:
            scene(run)
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


def _set_up(
    stack: ExitStack, workdir: Path, jars: Path | None, alertmanager: str | None
) -> DemoRun:
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
    overrides = {"replica.lag.time.max.ms": LAG_TIME_MS, "broker.session.timeout.ms": LAG_TIME_MS}
    broker_overrides = {OWN_TOPICS_LEADER: {"replica.lag.time.max.ms": OWN_TOPICS_LAG_TIME_MS}}
    cluster = stack.enter_context(
        LocalCluster(workdir / "kafka", overrides, broker_overrides, jars, java)
    )
    webhooks = stack.enter_context(WebhookReceiver())
    stack.callback(_write_deliveries, webhooks, workdir / "webhooks.jsonl")
    services = Services(cluster, workdir, webhooks.url, java, connector, alertmanager)
    services.create_topics()
    cluster.create_topic(
        WATCHED,
        {0: (LEADER, FOLLOWER)},
        {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    )
    load = stack.enter_context(
        LoadProducer(cluster.bootstrap_servers, [(WATCHED, 0)], workdir / "acknowledged.jsonl")
    )
    addresses = {broker: cluster.address(broker) for broker in BROKERS}
    probe = stack.enter_context(Probe(addresses, WATCHED, 0, workdir / "probe.jsonl"))
    table.say("starting collect, stream and export; the load producer runs")
    stack.callback(services.stop)
    services.start()
    services.wait_ready()
    report = Report(
        WATCHED,
        services.settings.detect.thresholds,
        services.settings.collect.pass_seconds or PASS_SECONDS,
        probe.first,
    )
    return DemoRun(cluster, services, load, webhooks, report, table)


def _judge(run: DemoRun) -> list[AlertResult]:
    """Ends the load and compares the proven range with the producer's acknowledgements."""
    run.table.say("reading the topic back, to compare the proven range with the producer's record")
    run.load.stop()
    stored = read_partitions(run.cluster.bootstrap_servers, [(WATCHED, 0)])[WATCHED, 0]
    alerts = run.webhooks.alerts()
    proven = run.report.loss_range("proven", alerts)
    run.report.comparison = compare_loss(proven, run.load.acknowledged(), stored.record_ids)
    return run.report.results(alerts)


def _write_deliveries(webhooks: WebhookReceiver, file: Path) -> None:
    """One delivery a line: shows why an alert is late or missing."""
    lines = (json.dumps({"received_at": at, **payload}) for at, payload in webhooks.deliveries())
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _print_summary(run: DemoRun, results: list[AlertResult], reasons: list[str]) -> None:
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
    for remark in [*latency_remarks(results), *run.report.other_alerts(run.webhooks.alerts())]:
        run.table.print(remark[0].upper() + remark[1:] + ".")
    run.table.print(f"Written: {Path(REPORT).absolute()}")
    for reason in reasons:
        click.echo(f"FAILED: {reason}", err=True)
    run.table.say(
        f"{len(reasons)} failures" if reasons else "every expected alert came, and no other page"
    )


def _hold(run: DemoRun) -> None:
    servers = ",".join(run.cluster.bootstrap_servers)
    click.echo(f"Left running. Kafka: {servers}; configuration: {run.services.config}")
    for name, address in run.services.addresses().items():
        click.echo(f"  {name}: {address}")
    run.table.say("Ctrl-C ends everything")
    signal.pause()
