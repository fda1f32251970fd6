"""`tidemark demo`: starts everything, plays the scenes, judges, and leaves nothing behind."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import click

from tidemark.core.errors import TidemarkError
from tidemark.demo.expectations import EXTRA_PASSES, EXTRA_SECONDS, FOLLOWER, LEADER, WITNESS
from tidemark.demo.report import Report, Row, bars, verdict
from tidemark.demo.scenes import PLAY, Stage
from tidemark.demo.services import WATCHED, Services, create_own_topics
from tidemark.demo.table import LiveTable
from tidemark.demo.truth import compare
from tidemark.jvm.jars import broker_jars, connector_jars
from tidemark.jvm.java import JavaHome, find_java
from tidemark.kafka.client import quiet_client_logs
from tidemark.local.cluster import BROKERS, LocalCluster
from tidemark.local.load import Load, read_back
from tidemark.local.probe import Probe
from tidemark.local.receiver import WebhookReceiver

REPORT: Final = "demo-report.json"
LAG_TIME_MS: Final = "15000"
# The broker that leads Tidemark's own topics drops a silent follower sooner: until it does, their high watermark stands
# too, and no consumer may read past it. With events on a cluster of their own this is not needed.
WITNESS_LAG_TIME_MS: Final = "1000"
# `collect`'s default up to 2,000 partitions.
PASS_SECONDS: Final = 1.0


@click.command("demo", help="Play faults on a real local cluster and show whether the alerts came.")
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
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    place = workdir or Path(tempfile.mkdtemp(prefix="tidemark-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    table = LiveTable()
    failures = _run(place.absolute(), jars, keep, table, alertmanager)
    if failures:
        raise TidemarkError(f"the demo failed: {'; '.join(failures)}. Logs and records: {place}")
    if workdir is None:
        shutil.rmtree(place, ignore_errors=True)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _run(
    workdir: Path, jars: Path | None, keep: bool, table: LiveTable, alertmanager: str | None
) -> list[str]:
    """Plays everything; the reasons for failure. Ends every process on the way out, whatever the way is."""
    quiet_client_logs()
    java = find_java()
    for skipped in java.passed_over:
        table.say(f"Java: passed over {skipped}; using Java {java.major} of {java.source}")
    broker_jars(jars, java)
    connector = str(connector_jars(jars, java)[0].parent)
    with ExitStack() as stack:
        stage = _set_up(stack, workdir, jars, connector, java, table, alertmanager)
        for scene in PLAY:
            scene(stage)
        rows = _judge(stage)
        _write(rows)
        table.finish(rows)
        failures = verdict(rows)
        _say_result(table, stage.report, rows, stage.report.beside(stage.alerts()), failures)
        if keep:
            _hold(stage, table)
        return failures


def _set_up(
    stack: ExitStack,
    workdir: Path,
    jars: Path | None,
    connector: str,
    java: JavaHome,
    table: LiveTable,
    alertmanager: str | None,
) -> Stage:
    table.say(
        f"starting one controller and three brokers with Java {java.major} ({java.source}); work folder {workdir}"
    )
    overrides = {"replica.lag.time.max.ms": LAG_TIME_MS, "broker.session.timeout.ms": LAG_TIME_MS}
    cluster = stack.enter_context(
        LocalCluster(
            workdir / "kafka",
            overrides,
            {WITNESS: {"replica.lag.time.max.ms": WITNESS_LAG_TIME_MS}},
            jars,
            java,
        ),
    )
    webhooks = stack.enter_context(WebhookReceiver())
    stack.callback(_write_deliveries, webhooks, workdir / "webhooks.jsonl")
    services = Services(cluster, workdir, webhooks.url, java, connector, alertmanager)
    own_topics = create_own_topics(cluster, services.settings)
    cluster.create_topic(
        WATCHED,
        {0: (LEADER, FOLLOWER)},
        {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
    )
    load = stack.enter_context(
        Load(cluster.bootstrap_servers, WATCHED, workdir / "acknowledged.jsonl")
    )
    addresses = {broker: cluster.address(broker) for broker in BROKERS}
    probe = stack.enter_context(Probe(addresses, WATCHED, 0, workdir / "probe.jsonl"))
    table.say("starting collect, stream and export; load runs")
    stack.callback(services.stop)
    services.start()
    services.wait_ready()
    report = Report(
        WATCHED,
        services.settings.detect.thresholds,
        services.settings.collect.pass_seconds or PASS_SECONDS,
        probe.first,
    )
    return Stage(cluster, services, load, webhooks, report, table, own_topics)


def _judge(stage: Stage) -> list[Row]:
    """Ends the load, reads the topic back and lays the proven range beside what the producer was told."""
    stage.table.say(
        "reading the topic back, to compare the proven range with the producer's own record"
    )
    stage.load.stop()
    held = read_back(stage.cluster.bootstrap_servers, WATCHED)
    stage.report.comparison = compare(
        stage.report.claimed("proven", stage.alerts()), stage.load.acknowledged(), held
    )
    return stage.report.rows(stage.alerts())


def _write(rows: list[Row]) -> None:
    Path(REPORT).write_text(
        json.dumps([row.as_json() for row in rows], indent=1) + "\n", encoding="utf-8"
    )


def _write_deliveries(webhooks: WebhookReceiver, file: Path) -> None:
    """What the receiver got, a delivery a line: to look up why an alert was late or missing."""
    with file.open("w", encoding="utf-8") as output:
        for received_at, payload in webhooks.deliveries():
            output.write(json.dumps({"received_at": received_at, **payload}) + "\n")


def _say_result(
    table: LiveTable, report: Report, rows: list[Row], beside: list[str], failures: list[str]
) -> None:
    click.echo(
        "\n'page' = severity critical; s from detectable: since a probe apart from Tidemark first saw the condition."
    )
    click.echo(
        f"Allowed: {EXTRA_PASSES} passes + {EXTRA_SECONDS:.0f} s + the detector's hysteresis (3 passes for states, 2 reads for loss)."
    )
    if report.comparison is not None:
        click.echo(f"Committed data loss: {report.comparison.text()}.")
    for remark in [*bars(rows), *beside]:
        click.echo(remark[0].upper() + remark[1:] + ".")
    click.echo(f"Written: {Path(REPORT).absolute()}")
    for failure in failures:
        click.echo(f"FAILED: {failure}", err=True)
    table.say(
        "every expected alert came, and no other page"
        if not failures
        else f"{len(failures)} failures"
    )


def _hold(stage: Stage, table: LiveTable) -> None:
    click.echo(
        f"Left running. Kafka: {','.join(stage.cluster.bootstrap_servers)}; configuration: {stage.services.config}"
    )
    for name, address in stage.services.addresses().items():
        click.echo(f"  {name}: {address}")
    table.say("Ctrl-C ends everything")
    while True:
        time.sleep(1.0)
