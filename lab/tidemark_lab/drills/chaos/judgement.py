"""Judges the recording of a run of chaos, as often as one wants, without brokers."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from pathlib import Path
from typing import Final

from tidemark.core.text import counted, utc
from tidemark_lab.drills.chaos.run import CONTROLLER_LOG, Run, read_run
from tidemark_lab.drills.set_up import EVENTS
from tidemark_lab.judge import needless
from tidemark_lab.judge.claims import claims_of, judge_claims, summary
from tidemark_lab.judge.elections import judge_elections, unclean_elections
from tidemark_lab.judge.replay import GROUPS, replay
from tidemark_lab.judge.samples import batches_of, read_samples
from tidemark_lab.judge.truth import LostRecord

TABLE: Final = "alerts.txt"
PASSED: Final = "passed"
# The lines of a table, and the reasons why the run fails.
Judgement = tuple[list[str], list[str]]


def judge_recording(folder: Path) -> list[str]:
    """Writes the table and the verdict, and returns its lines; the last one is PASSED or not."""
    run = read_run(folder)
    lines, reasons = (_judge_harms if run.hostile else _judge_benign)(run, folder)
    if run.error is not None:
        reasons.append(f"the run ended early: {run.error}")
    lines += [f"FAILED: {reason}" for reason in reasons] or [PASSED]
    (folder / TABLE).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return lines


def _judge_benign(run: Run, folder: Path) -> Judgement:
    truth, events = run.truth, folder / f"{EVENTS}.gz"
    caused = needless.join(truth.faults, replay(events))
    lines = [
        *needless.table(caused).splitlines(),
        "total in one group, as `tidemark replay` folds",
        *(f"    {line}" for line in needless.totals(replay(events, 1))),
    ]
    lines.append(
        f"{counted(len(truth.faults), 'fault')} at replication factor {run.replication_factor}, "
        f"seed {run.seed}; {counted(truth.acknowledged, 'acknowledged record')}, "
        f"{len(truth.lost)} lost, {sum(truth.removed.values())} removed by faults; {GROUPS} groups"
    )
    lost = [f"a lost record: {_lost(run, record)}" for record in truth.lost[:5]]
    return lines, [*needless.failures(caused), *lost]


def _lost(run: Run, record: LostRecord) -> str:
    held = run.truth.held.get(record.place, {}).get(record.offset)
    holds = "no record" if held is None else f"record {held.id}"
    return (
        f"{record.topic}-{record.partition}: record {record.id} was acknowledged at offset "
        f"{record.offset}, which holds {holds}"
    )


def _judge_harms(run: Run, folder: Path) -> Judgement:
    truth, events = run.truth, folder / f"{EVENTS}.gz"
    # Nothing is known of a fault that ended the run early.
    settled_at = math.inf if run.error is None else max((f.end for f in truth.faults), default=0)
    alerts = [alert for alert in replay(events) if alert.at <= settled_at]
    samples = read_samples(batches_of(events), settled_at)
    claims = judge_claims(truth, claims_of(alerts), samples)
    lost = Counter(one.fault for one in truth.lost)
    lines = [
        f"{lost[number]:6} lost  {claims.claimed_of[number]:6} claimed  {fault.name}: "
        f"{fault.detail}  [{utc(fault.begin)}, {fault.end - fault.begin:.1f} s]"
        for number, fault in enumerate(truth.faults)
    ]
    lines += ["total", *(f"    {line}" for line in needless.totals(alerts)), *summary(claims)]
    lines.append(
        f"{counted(len(truth.faults), 'fault')}, seed {run.seed}, Kafka {run.kafka}"
        f"{', with the metadata log' if run.metadata_log else ''}; "
        f"{counted(truth.acknowledged, 'acknowledged record')}, {len(truth.lost)} lost"
    )
    with gzip.open(folder / f"{CONTROLLER_LOG}.gz", "rt", encoding="utf-8") as log:
        elections = judge_elections([*unclean_elections(log)], alerts, samples, truth)
    lines.append(
        f"unclean elections: a critical alert names {elections.critical}, a warning "
        f"{elections.warned}, none {elections.unnoticed.total()}"
    )
    lines += [f"    {count:6}  {reason}" for reason, count in elections.unnoticed.most_common()]
    return lines, claims.failures + elections.failures
