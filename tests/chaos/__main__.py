"""`make chaos`: faults on real brokers. Benign ones fail on a needless alert or a lost record.

`python -m tests.chaos --seconds 300 --seed N --replication-factor 3 --record DIR` leaves
events.jsonl.gz, truth.json, acked.jsonl.gz and the table alerts.txt in DIR; of several factors, in
DIR/rf3 and DIR/rf2. `--hostile` injects faults that lose records, and fails on a claim of a record
that survived, on a loss that was sampled and is not claimed, and on a clean election that an alert
calls unclean; it leaves harm-truth.json, disk.json.gz and controller.log.gz instead of truth.json.
`--judge DIR…` judges recordings again, without brokers. The recording of a run that fails is kept
in any case.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import math
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.harm_judge import claims_of, judge_harms, summary
from tests.chaos.harm_run import read_disk, run_harms
from tests.chaos.harm_samples import batches_of, read_samples
from tests.chaos.harm_truth import HarmTruth, parse_harm_truth
from tests.chaos.judge import failures, join, table, totals
from tests.chaos.replay import GROUPS, replay
from tests.chaos.run import run
from tests.chaos.truth import Truth, parse_truth
from tests.chaos.unclean_elections import judge_elections, unclean_elections
from tests.runs import exit_code
from tidemark.core.text import counted, utc
from tidemark_lab.brokers.jars import KAFKA_VERSION
from tidemark_lab.brokers.layout import Layout
from tidemark_lab.brokers.versions import VERSIONS

EVENTS, ACKNOWLEDGED, DISK, TRUTH, HARM_TRUTH, TABLE = (
    "events.jsonl.gz",
    "acked.jsonl.gz",
    "disk.json.gz",
    "truth.json",
    "harm-truth.json",
    "alerts.txt",
)
CONTROLLER_LOG = "controller.log.gz"
PASSED = "passed"
KRAFT = [number for number, version in VERSIONS.items() if version.layout is Layout]


def main() -> int:
    options = _options()
    if options.judge:
        return max(map(judge, options.judge))
    return exit_code("chaos", lambda: max(_runs(options)))


def _runs(options: argparse.Namespace) -> Iterator[int]:
    """The verdict of each run."""
    record: Path | None = options.record
    if options.hostile:
        _report(f"seed {options.seed}, hostile, Kafka {options.kafka}")
        truth = HarmTruth(options.seed, kafka=options.kafka, metadata_log=options.metadata_log)
        yield _hostile(truth, options.seconds, record)
        return
    factors = options.replication_factor
    for factor in factors:
        _report(f"seed {options.seed}, replication factor {factor}")
        own = record / f"rf{factor}" if record is not None and len(factors) > 1 else record
        yield _benign(Truth(options.seed, factor), options.seconds, own)


def _benign(truth: Truth, seconds: float, record: Path | None) -> int:
    """One run on a new cluster and its verdict."""
    with _recording(record) as (folder, kept):
        try:
            run(folder, seconds, truth, _report)
        finally:
            _keep(folder, kept)
            (kept / TRUTH).write_text(truth.as_json(), encoding="utf-8")
        return judge(kept)


def _hostile(truth: HarmTruth, seconds: float, record: Path | None) -> int:
    with _recording(record) as (folder, kept):
        try:
            run_harms(folder, seconds, truth, _report)
        finally:
            _keep(folder, kept)
            (kept / HARM_TRUTH).write_text(truth.as_json(), encoding="utf-8")
        return judge(kept)


@contextlib.contextmanager
def _recording(record: Path | None) -> Iterator[tuple[Path, Path]]:
    """A folder for a cluster, which is removed, and one for the recording.

    Without `record`, the recording is removed too where the run passes.
    """
    folder = Path(tempfile.mkdtemp(prefix="tidemark-chaos-"))
    kept = record or Path(tempfile.mkdtemp(prefix="tidemark-chaos-record-"))
    kept.mkdir(parents=True, exist_ok=True)
    passed = False
    try:
        yield folder, kept
        passed = (kept / TABLE).read_text(encoding="utf-8").endswith(f"{PASSED}\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if record is None and passed:
            shutil.rmtree(kept, ignore_errors=True)
        else:
            _report(f"recording: {kept}")


def _keep(folder: Path, record: Path) -> None:
    """Packs what a run left."""
    for name in (EVENTS, ACKNOWLEDGED, DISK, CONTROLLER_LOG):
        plain = folder / name.removesuffix(".gz")
        if plain.exists():
            with plain.open("rb") as source, gzip.open(record / name, "wb") as packed:
                shutil.copyfileobj(source, packed)


def judge(record: Path) -> int:
    """Prints and writes the table and the verdict; 0 where it is good, else 1."""
    hostile = (record / HARM_TRUTH).exists()
    lines, reasons = _judge_harms(record) if hostile else _judge_benign(record)
    lines += [f"FAILED: {reason}" for reason in reasons] or [PASSED]
    text = "".join(line + "\n" for line in lines)
    (record / TABLE).write_text(text, encoding="utf-8")
    print(text, end="", flush=True)
    return 1 if reasons else 0


def _judge_benign(record: Path) -> tuple[list[str], list[str]]:
    truth = parse_truth((record / TRUTH).read_text(encoding="utf-8"))
    caused = join(truth.faults, replay(record / EVENTS))
    reasons = [*failures(caused), *(f"a lost record: {text}" for text in truth.lost[:5])]
    reasons += _early_end(truth.error)
    lines = [
        *table(caused).splitlines(),
        "total in one group, as `tidemark replay` folds",
        *(f"    {line}" for line in totals(replay(record / EVENTS, 1))),
    ]
    lines.append(
        f"{counted(len(truth.faults), 'fault')} at replication factor {truth.replication_factor}, "
        f"seed {truth.seed}; {counted(truth.acknowledged, 'acknowledged record')}, "
        f"{len(truth.lost)} lost, {sum(truth.removed.values())} removed by faults; {GROUPS} groups"
    )
    return lines, reasons


def _judge_harms(record: Path) -> tuple[list[str], list[str]]:
    truth = parse_harm_truth((record / HARM_TRUTH).read_text(encoding="utf-8"))
    # Nothing is known of a fault that ended the run early.
    settled_at = math.inf if truth.error is None else max((f.end for f in truth.faults), default=0)
    alerts = [alert for alert in replay(record / EVENTS) if alert.at <= settled_at]
    samples = read_samples(batches_of(record / EVENTS), settled_at)
    verdict = judge_harms(truth, claims_of(alerts), samples, read_disk(record / DISK))
    lost = Counter(one.fault for one in truth.lost)
    lines = [
        f"{lost[number]:6} lost  {verdict.claimed_of[number]:6} claimed  {fault.name}: "
        f"{fault.detail}  [{utc(fault.begin)}, {fault.end - fault.begin:.1f} s]"
        for number, fault in enumerate(truth.faults)
    ]
    lines += ["total", *(f"    {line}" for line in totals(alerts)), *summary(verdict)]
    lines.append(
        f"{counted(len(truth.faults), 'fault')}, seed {truth.seed}, Kafka {truth.kafka}"
        f"{', with the metadata log' if truth.metadata_log else ''}; "
        f"{counted(truth.acknowledged, 'acknowledged record')}, {len(truth.lost)} lost"
    )
    reasons = verdict.failures + _early_end(truth.error)
    if not (record / CONTROLLER_LOG).exists():
        return lines, reasons
    with gzip.open(record / CONTROLLER_LOG, "rt", encoding="utf-8") as log:
        elections = judge_elections([*unclean_elections(log)], alerts, samples, truth)
    lines.append(
        f"unclean elections: a critical alert names {elections.critical}, a warning "
        f"{elections.warned}, none {elections.unnoticed.total()}"
    )
    lines += [f"    {count:6}  {reason}" for reason, count in elections.unnoticed.most_common()]
    return lines, reasons + elections.failures


def _early_end(error: str | None) -> list[str]:
    return [] if error is None else [f"the run ended early: {error}"]


def _report(line: str) -> None:
    print(line, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    add = parser.add_argument
    add("--seconds", type=float, default=300.0, help="the length of a run (300)")
    add("--hostile", action="store_true", help="faults that lose records")
    add("--kafka", default=KAFKA_VERSION, choices=KRAFT, help="the version of hostile runs")
    add("--metadata-log", action="store_true", help="in hostile runs, collect reads it too")
    add("--seed", type=int, default=random.randrange(10_000), help="of the faults (random)")
    add("--replication-factor", type=int, nargs="+", default=[3, 2], choices=(2, 3))
    add("--record", type=Path, metavar="DIR", help="keep the recording here")
    add("--judge", type=Path, nargs="+", metavar="DIR", help="judge recordings")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
