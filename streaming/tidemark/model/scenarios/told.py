"""A played scenario as text: a table with a row a step, the replica logs drawn, and what became of the records."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from tidemark.model.drawing import LEGEND, Drawn, draw
from tidemark.model.log import Log, parting
from tidemark.model.replica_manager.state import Broker, Brokers, Cluster, named
from tidemark.model.scenarios.play import Play, Row
from tidemark.model.scenarios.scenario import Scenario
from tidemark.model.table import aligned

# Of a whole row, where it can be kept to. What happens in a step goes on in further lines, none narrower than an error's name.
WIDTH = 140
NARROWEST_TELLING = 31
LEGEND_OF_TABLE = (
    (
        "1 LEO HW",
        "of broker 1 the log end offset (where its next record goes) and the high watermark (where what it knows to be",
    ),
    ("", "committed ends); * leads, - is down"),
    ("epochs", "its leader epochs: 1@3 is epoch 1, which begins at offset 3"),
    (
        "leader knows",
        "the log end offsets of the followers, as far as their last fetches told; ? before the first one",
    ),
    (
        "in sync",
        "as the controller has it; →1,2? is what a leader asks for; elr are the eligible leader replicas",
    ),
    ("produce", "records whose producers wait, in the leader's produce purgatory"),
    ("fetch", "followers whose fetches wait, in its fetch purgatory"),
    ("cut", "2→1: the log of broker 2 was cut and ends at offset 1"),
)


def tell(scenario: Scenario, protocol: str | None = None) -> list[str]:
    """Everything that `tidemark model show` prints, as lines."""
    play = scenario.play(protocol)
    chosen = play.cluster.protocol
    shown = table(play)
    lines = [
        f"{scenario.name} under {chosen.name} (Kafka {chosen.kafka})",
        scenario.question,
        f"{scenario.brokers} brokers, min ISR {scenario.min_in_sync_replicas}.",
        "",
        *shown,
        "",
        *aligned([column for column in LEGEND_OF_TABLE if column[0] in shown[0]]),
    ]
    for number, title in (*play.pictures, (len(play.rows), "the end")):
        lines += [
            "",
            f"After step {number - 1}: {title}",
            "",
            *(f"  {line}" for line in picture(play.rows[number - 1].cluster)),
        ]
    return [*lines, "", f"  {LEGEND}", "", *verdict(play.cluster)]


def table(play: Play) -> list[str]:
    """The table alone, without the columns that say nothing in it."""
    heading, *steps = cells(play)
    kept = [
        at for at, name in enumerate(heading) if name == "step" or any(step[at] for step in steps)
    ]
    widths = [max(len(row[at]) for row in (heading, *steps)) for at in kept[:-1]]
    telling = max(NARROWEST_TELLING, WIDTH - sum(widths) - 2 * len(widths))
    rows = [tuple(heading[at] for at in kept)]
    for step in steps:
        for line, told in enumerate(wrap(step[-1], telling)):
            rows.append((*(step[at] if line == 0 else "" for at in kept[:-1]), told))
    return aligned(rows)


def cells(play: Play) -> list[tuple[str, ...]]:
    """Heading and rows, one a step; the first cell is the step's number, the last one what happens."""
    epochs = " epochs" if play.cluster.protocol.leader_epochs else ""
    brokers = (f"{broker} LEO HW{epochs}" for broker in play.cluster.assigned)
    rows: list[tuple[str, ...]] = [
        ("step", *brokers, "leader knows", "in sync", "produce", "fetch", "cut", "what happens")
    ]
    before: Cluster | None = None
    for number, row in enumerate(play.rows):
        rows.append((str(number), *_row(row, before)))
        before = row.cluster
    return rows


def _row(row: Row, before: Cluster | None) -> Iterator[str]:
    cluster = row.cluster
    for broker in cluster.brokers:
        yield _broker(cluster, broker)
    leaders = [broker for broker in cluster.brokers if broker.leads]
    # A second column for a zombie would say what nobody acts upon; both leaders are shown, the newest epoch first.
    leaders.sort(key=lambda broker: -broker.leader_epoch)
    yield " | ".join(_remotes(broker) for broker in leaders) or "-"
    yield _in_sync(cluster)
    yield " | ".join(
        named(tuple(waiting.record for waiting in broker.produce_purgatory))
        for broker in leaders
        if broker.produce_purgatory
    )
    yield ",".join(
        str(waiting.follower) for broker in leaders for waiting in broker.fetch_purgatory
    )
    yield _cut(before, cluster)
    yield f"{row.done}: {'; '.join(row.outcome)}" if row.outcome else row.done


def _broker(cluster: Cluster, broker: Broker) -> str:
    mark = "-" if not broker.running else "*" if broker.leads else " "
    epochs = (
        " ".join(f"{epoch}@{start}" for epoch, start in broker.epoch_cache)
        if cluster.protocol.leader_epochs
        else ""
    )
    return f"{mark} {broker.log_end_offset:>3} {broker.high_watermark:>2} {epochs}".rstrip()


def _remotes(broker: Broker) -> str:
    return " ".join(
        f"{each}:{'?' if remote.log_end_offset is None else remote.log_end_offset}"
        for each, remote in broker.remotes.items()
    )


def _in_sync(cluster: Cluster) -> str:
    decided = cluster.controller
    eligible = (
        f" elr {_shown(decided.eligible_leader_replicas)}"
        if decided.eligible_leader_replicas
        else ""
    )
    wanted = [
        broker.pending_in_sync_replicas
        for broker in cluster.brokers
        if broker.pending_in_sync_replicas is not None
    ]
    return (
        _shown(decided.in_sync_replicas) + (f"→{_shown(wanted[0])}?" if wanted else "") + eligible
    )


def _shown(brokers: Brokers) -> str:
    return ",".join(map(str, brokers)) or "none"


def _cut(before: Cluster | None, after: Cluster) -> str:
    """Which broker's log became shorter in this step, and to which end."""
    if before is None:
        return ""
    pairs = zip(before.brokers, after.brokers, strict=True)
    return " ".join(
        f"{new.id}→{new.log_end_offset}"
        for old, new in pairs
        if new.log_end_offset < old.log_end_offset
    )


def picture(cluster: Cluster) -> list[str]:
    """The logs of all brokers."""
    return draw(
        [Drawn(_role(broker), broker.log, broker.high_watermark) for broker in cluster.brokers]
    )


def _role(broker: Broker) -> str:
    if not broker.running:
        return f"{broker.id} down"
    return f"{broker.id} leads in {broker.leader_epoch}" if broker.leads else f"{broker.id}"


def missing(records: Log, log: Log) -> Log:
    """Those of the records that a log does not hold."""
    return tuple(record for record in records if record not in log)


def verdict(cluster: Cluster) -> list[str]:
    """What became of the records, read off the last state: nothing here is written by hand."""
    leader = next(
        (b for b in cluster.brokers if b.leads and b.id == cluster.controller.leader), None
    )
    if leader is None:
        return [
            "At the end nobody leads: the partition is offline, and nothing can be said to be lost."
        ]
    lost, unkept = missing(cluster.committed, leader.log), missing(cluster.acked, leader.log)
    lines = [f"At the end {leader.id} leads in epoch {leader.leader_epoch}."]
    lines.append(
        f"LOST: {named(lost)} committed, and not in its log."
        if lost
        else "No committed record is lost."
    )
    if unkept:
        lines.append(
            f"BROKEN PROMISE: {named(unkept)} acknowledged under acks=all, and not in its log."
        )
    served = missing(cluster.acked_by_one, leader.log)
    if served:
        lines.append(
            f"{named(served)} acknowledged under acks=1 and not in its log: acks=1 promises no more."
        )
    for broker in cluster.brokers:
        at = parting(leader.log, broker.log) if broker.running else None
        if at is not None:
            settled = " and nothing will mend it" if not _will_mend(cluster, leader, broker) else ""
            lines.append(
                f"DIVERGED: {broker.id} holds another record than {leader.id} at offset {at}{settled}."
            )
    return lines


def _will_mend(cluster: Cluster, leader: Broker, broker: Broker) -> bool:
    """Whether the follower has still to be told where to cut."""
    return (
        broker.truncating
        or broker.leader != leader.id
        or (cluster.protocol.kraft and broker.answer is not None)
    )
