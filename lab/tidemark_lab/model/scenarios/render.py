"""A scenario run as text: its steps, its logs, and which records it lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from textwrap import wrap

from tidemark.core.step_table import WIDTH, fit, legend
from tidemark_lab.model.drawing import LEGEND, LabelledLog, draw_logs
from tidemark_lab.model.log import first_difference
from tidemark_lab.model.replica_manager.delayed import DelayedFetch, reader_name
from tidemark_lab.model.replica_manager.purgatory import low_watermark
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel, broker_list, record_names
from tidemark_lab.model.replica_manager.transactions import last_stable_offset
from tidemark_lab.model.scenarios.excerpt import without
from tidemark_lab.model.scenarios.fates import (
    elected_leader,
    fates,
    lost_records,
    missing_records,
    settings_lines,
)
from tidemark_lab.model.scenarios.run import RunStep, ScenarioRun
from tidemark_lab.model.scenarios.scenario import Scenario

DOWN_LEGEND = "a broker that is down has the high watermark of its checkpoint, not its last one"
TABLE_LEGEND = (
    (
        "1 LEO HW",
        "log end offset and high watermark of broker 1; * it leads, - it is down",
    ),
    (
        "epochs",
        "its epoch cache: 1@3: leader epoch 1 (each election counts it up) starts at offset 3",
    ),
    (
        "remote LEOs",
        "the followers' log end offsets that the leader knows; ? before the first fetch",
    ),
    (
        "ISR",
        "the controller's ISR; →1,2? is what a leader asks for; elr: eligible leader replicas",
    ),
    ("LSO", "the leader's last stable offset, where consumers with read_committed stop"),
    (
        "consumers",
        "C1:2: consumer C1 fetches from offset 2 next; C1@2: a fetch waits at broker 2",
    ),
    ("log starts", "the first offset of each broker's log; low is the low watermark"),
    ("produce", "records that wait in the leader's produce purgatory for the high watermark"),
    ("fetch", "followers with a fetch that waits in the leader's fetch purgatory"),
    ("(2)", "the fetch of 2 is complete, and the watcher list of this partition still has it"),
    ("delete", "DeleteRecords requests that wait for the low watermark, with their offsets"),
    ("cut", "2:1: the log of broker 2 became shorter and now ends at offset 1"),
)


def render_scenario(
    scenario: Scenario,
    protocol: str | None = None,
    min_in_sync_replicas: int | None = None,
    width: int = WIDTH,
    hidden: Collection[str] = (),
) -> list[str]:
    """The lines of `tidemark model show`, for a terminal of `width` columns.

    `hidden` are columns to leave out.
    """
    run = scenario.run(protocol, min_in_sync_replicas)
    steps, omitted = fit(without(table_cells(run), hidden), width)
    lines = [*introduction(scenario, run, width), "", *steps, "", *table_legend(steps, width)]
    if omitted:
        lines += ["", *wrap(f"A wider terminal also shows: {', '.join(omitted)}.", width)]
    for number, title in (*run.drawings, (len(run.steps) - 1, "the end")):
        drawing = (f"  {line}" for line in draw_cluster(run.steps[number].cluster))
        lines += ["", *wrap(f"After step {number}: {title}", width), "", *drawing]
    legends = [LEGEND]
    if not all(broker.running for step in run.steps for broker in step.cluster.brokers):
        legends.append(DOWN_LEGEND)
    indented = (f"  {line}" for legend in legends for line in wrap(legend, width - 2))
    lines += ["", *indented]
    for title, part in (
        ("", verdict(run.cluster)),
        ("How that came about", fates(scenario, run)),
        (
            "What the same steps lose under each protocol, and with another setting",
            settings_lines(scenario),
        ),
    ):
        rows = (row for line in part for row in wrap(line, width))
        lines += ["", *([f"{title}:"] if title else []), *rows] if part else []
    return lines


def introduction(scenario: Scenario, run: ScenarioRun, width: int) -> list[str]:
    """The name, the protocol, the question, the constants."""
    chosen = run.cluster.protocol
    return [
        *wrap(f"{scenario.name} under {chosen.name} ({chosen.releases})", width),
        *wrap(chosen.rule, min(width, WIDTH)),
        *wrap(scenario.question, min(width, WIDTH)),
        *wrap(constants(run.cluster), width),
    ]


def constants(cluster: ClusterModel) -> str:
    """The replicas and the settings; where unclean elections are allowed, whether one happens."""
    unclean = ""
    if cluster.unclean_leader_election:
        happened = any(each.recovering for each in cluster.decisions)
        least = "one happens" if happened else "none happens: each leader is elected from the ISR"
        unclean = f" Unclean elections are allowed, as by default until 0.10, and {least}."
    return f"{len(cluster.brokers)} brokers, min ISR {cluster.min_in_sync_replicas}.{unclean}"


def table_legend(steps: list[str], width: int) -> list[str]:
    """What the columns of a table mean; its first line is the heading."""
    # "(2)" is no column: an entry that is complete, where the table has one.
    shown = f"{steps[0]} (2)" if any(" (2)" in step for step in steps) else steps[0]
    return legend([each for each in TABLE_LEGEND if each[0] in shown], width)


def render_table(run: ScenarioRun) -> list[str]:
    """The table of steps, without columns that are empty in every row."""
    return fit(table_cells(run), WIDTH)[0]


def table_cells(run: ScenarioRun) -> list[tuple[str, ...]]:
    """The heading, then one row for each step. The first cell is the step's number."""
    epochs = " epochs" if run.cluster.protocol.leader_epochs else ""
    brokers = (f"{broker} LEO HW{epochs}" for broker in run.cluster.assigned)
    rows: list[tuple[str, ...]] = [
        (
            *("step", *brokers),
            *("remote LEOs", "ISR", "LSO", "consumers", "log starts"),
            *("produce", "fetch", "delete", "cut", "what happens"),
        )
    ]
    before = run.cluster if not run.steps else run.steps[0].cluster
    for number, step in enumerate(run.steps):
        rows.append((str(number), *_cells(step, before)))
        before = step.cluster
    return rows


def _cells(step: RunStep, before: ClusterModel) -> Iterator[str]:
    cluster = step.cluster
    for broker in cluster.brokers:
        yield _broker_cell(broker, epochs=cluster.protocol.leader_epochs)
    # The true leader first, then zombies.
    leaders = [broker for broker in cluster.brokers if broker.leads]
    leaders.sort(key=lambda broker: -broker.leader_epoch)
    yield " | ".join(_remote_end_offsets(broker) for broker in leaders) or "-"
    yield _isr_cell(cluster)
    yield (
        " | ".join(str(last_stable_offset(cluster, broker)) for broker in leaders)
        if cluster.transactional
        else ""
    )
    yield " ".join(f"{reader_name(each.reader)}:{each.position}" for each in cluster.consumers)
    yield _log_starts(cluster, leaders)
    yield " | ".join(
        record_names(
            tuple(each for waiting in broker.produce_purgatory for each in waiting.records)
        )
        for broker in leaders
        if broker.produce_purgatory
    )
    yield ",".join(
        _entry(waiting, "" if broker.leads else f"@{broker.id}")
        for broker in cluster.brokers
        for waiting in broker.fetch_purgatory
    )
    yield ",".join(
        str(waiting.required_offset) for broker in leaders for waiting in broker.delete_purgatory
    )
    yield " ".join(
        f"{new.id}:{new.log_end_offset}"
        for old, new in zip(before.brokers, cluster.brokers, strict=True)
        if new.log_end_offset < old.log_end_offset
    )
    yield f"{step.event}: {'; '.join(step.effects)}" if step.effects else step.event


def _broker_cell(broker: Broker, *, epochs: bool) -> str:
    mark = "-" if not broker.running else "*" if broker.leads else " "
    cache = " ".join(f"{epoch}@{start}" for epoch, start in broker.epoch_cache if epochs)
    return f"{mark} {broker.log_end_offset:>3} {broker.high_watermark:>2} {cache}".rstrip()


def _entry(waiting: DelayedFetch, place: str) -> str:
    name = f"{reader_name(waiting.reader)}{place}"
    return f"({name})" if waiting.completed else name


def _log_starts(cluster: ClusterModel, leaders: list[Broker]) -> str:
    if not any(broker.log_start_offset for broker in cluster.brokers):
        return ""
    starts = " ".join(f"{broker.id}:{broker.log_start_offset}" for broker in cluster.brokers)
    low = low_watermark(cluster, leaders[0].id) if leaders else None
    return f"{starts} low {'?' if low is None else low}"


def _remote_end_offsets(broker: Broker) -> str:
    return " ".join(
        f"{each}:{'?' if remote.log_end_offset is None else remote.log_end_offset}"
        for each, remote in broker.remotes.items()
    )


def _isr_cell(cluster: ClusterModel) -> str:
    decision = cluster.controller
    eligible = decision.eligible_leader_replicas
    pending = next(
        (
            f"→{broker_list(broker.pending_in_sync_replicas)}?"
            for broker in cluster.brokers
            if broker.pending_in_sync_replicas is not None
        ),
        "",
    )
    elr = f" elr {broker_list(eligible)}" if eligible else ""
    return f"{broker_list(decision.in_sync_replicas)}{pending}{elr}"


def draw_cluster(cluster: ClusterModel) -> list[str]:
    """The logs of all brokers."""
    return draw_logs(
        [
            LabelledLog(_label(broker), broker.log, broker.high_watermark, broker.log_start_offset)
            for broker in cluster.brokers
        ]
    )


def _label(broker: Broker) -> str:
    if not broker.running:
        return f"{broker.id} down"
    return f"{broker.id} leads in {broker.leader_epoch}" if broker.leads else f"{broker.id}"


def verdict(cluster: ClusterModel) -> list[str]:
    """Which records are lost, and which replicas diverge, in the last state."""
    leader = elected_leader(cluster)
    if leader is None:
        return ["At the end no broker leads: the partition is offline. Loss is not decided yet."]
    lost = lost_records(cluster)
    broken = missing_records(cluster.acked, leader.log)
    unpromised = missing_records(cluster.acked_with_acks_1, leader.log)
    lines = [
        f"At the end {leader.id} leads in epoch {leader.leader_epoch}.",
        f"LOST: {record_names(lost)} committed, but not in the leader's log."
        if lost
        else "No committed record is lost.",
    ]
    if broken:
        lines.append(
            f"BROKEN PROMISE: {record_names(broken)} acknowledged with acks=all, but not in the "
            "leader's log."
        )
    if unpromised:
        lines.append(
            f"{record_names(unpromised)} acknowledged with acks=1, but not in the leader's log: "
            "acks=1 does not promise more."
        )
    for broker in cluster.brokers:
        offset = first_difference(leader.log, broker.log) if broker.running else None
        if offset is not None:
            forever = "" if _will_truncate(cluster, leader, broker) else ", permanently"
            lines.append(
                f"DIVERGED: {broker.id} and {leader.id} hold different records "
                f"at offset {offset}{forever}."
            )
    return lines


def _will_truncate(cluster: ClusterModel, leader: Broker, broker: Broker) -> bool:
    """Whether the follower has still to learn where to truncate."""
    pending_response = cluster.protocol.kraft and broker.response is not None
    return broker.truncating or broker.leader != leader.id or pending_response
