"""Judges the recording of a run of chaos, as often as one wants, without brokers."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from pathlib import Path
from typing import Final

from tidemark.core.text import counted
from tidemark_lab.drills.chaos.run import CONTROLLER_LOG, ESCROW, Run, read_run
from tidemark_lab.drills.escrow.watch import judge_escrow, read_scrapes
from tidemark_lab.drills.set_up import EVENTS
from tidemark_lab.judge import needless
from tidemark_lab.judge.claims import Claims, claims_of, judge_claims, summary
from tidemark_lab.judge.elections import judge_elections, unclean_elections
from tidemark_lab.judge.replay import GROUPS, replay
from tidemark_lab.judge.samples import batches_of, read_samples
from tidemark_lab.judge.truth import LostRecord, name_of

TABLE: Final = "alerts.txt"
PASSED: Final = "passed"


def judge_recording(folder: Path) -> list[str]:
    """Writes the table and the verdict, and returns its lines; the last one is PASSED or not."""
    run = read_run(folder)
    truth, events = run.truth, folder / f"{EVENTS}.gz"
    # Nothing is known of a fault that ended the run early.
    settled_at = math.inf if run.error is None else max((f.end for f in truth.faults), default=0)
    alerts = [alert for alert in replay(events) if alert.at <= settled_at]
    samples = read_samples(batches_of(events), settled_at)
    claims = judge_claims(truth, claims_of(alerts), samples)
    with gzip.open(folder / f"{CONTROLLER_LOG}.gz", "rt", encoding="utf-8") as log:
        elections = judge_elections([*unclean_elections(log)], alerts, samples, truth)
    caused = needless.join(truth.faults, alerts)
    reasons = claims.failures + elections.failures
    if not run.hostile:
        reasons += needless.failures(caused)
        reasons += [f"a lost record: {_lost(run, record)}" for record in truth.lost[:5]]
    told: list[str] = []
    if run.escrow:
        scrapes = read_scrapes((folder / ESCROW).read_text(encoding="utf-8").splitlines())
        told, failed = judge_escrow(scrapes, batches_of(events))
        reasons += failed
    if run.error is not None:
        reasons.append(f"the run ended early: {run.error}")
    named = (
        f"unclean elections: a critical alert names {elections.critical}, a warning "
        f"{elections.warned}, none {elections.unnoticed.total()}"
    )
    lines = [
        *needless.table(caused).splitlines(),
        "total in one group, as `tidemark replay` folds",
        *(f"    {line}" for line in needless.totals(replay(events, 1))),
        *_losses(run, claims),
        named,
        *(f"    {count:6}  {reason}" for reason, count in elections.unnoticed.most_common()),
        *told,
        _head(run),
        *([f"FAILED: {reason}" for reason in reasons] or [PASSED]),
    ]
    (folder / TABLE).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return lines


def _head(run: Run) -> str:
    truth = run.truth
    kind = "hostile" if run.hostile else f"replication factor {run.replication_factor}"
    return (
        f"{counted(len(truth.faults), 'fault')}, {kind}, seed {run.seed}, Kafka {run.kafka}"
        f"{', with the metadata log' if run.metadata_log else ''}; "
        f"{counted(truth.acknowledged, 'acknowledged record')}, {len(truth.lost)} lost, "
        f"{sum(truth.removed.values())} removed in good order; {GROUPS} groups"
    )


def _losses(run: Run, claims: Claims) -> list[str]:
    """What each fault lost and what was claimed of it, then the sums."""
    lost = Counter(record.fault for record in run.truth.lost)
    lines = [
        f"{count:6} lost  {claims.claimed_of[number]:6} claimed  "
        f"{run.truth.faults[number].name}: {run.truth.faults[number].detail}"
        for number, count in sorted(lost.items())
    ]
    return [*lines, *summary(claims)]


def _lost(run: Run, record: LostRecord) -> str:
    held = run.truth.held.get(record.place, {}).get(record.offset)
    holds = "no record" if held is None else f"record {held.id}"
    return (
        f"{name_of(record.place)}: record {record.id} was acknowledged at offset "
        f"{record.offset}, which holds {holds}"
    )
