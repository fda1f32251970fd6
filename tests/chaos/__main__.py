"""`make chaos`: benign faults on real brokers. Fails on a needless alert or a lost record.

`python -m tests.chaos --seconds 300 --seed N --replication-factor 3 --record DIR` leaves
events.jsonl.gz, truth.json, acked.jsonl.gz and the table alerts.txt in DIR; of several factors, in
DIR/rf3 and DIR/rf2. `--judge DIR…` judges recordings again, without brokers.
"""

from __future__ import annotations

import argparse
import gzip
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.judge import failures, join, table, totals
from tests.chaos.replay import GROUPS, replay
from tests.chaos.run import run
from tests.chaos.truth import Truth, parse_truth
from tidemark.core.errors import TidemarkError
from tidemark.core.text import counted
from tidemark.kafka.client import quiet_client_logs

EVENTS, ACKNOWLEDGED, TRUTH, TABLE = (
    "events.jsonl.gz",
    "acked.jsonl.gz",
    "truth.json",
    "alerts.txt",
)


def main() -> int:
    options = _options()
    if options.judge:
        return max(map(judge, options.judge))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    quiet_client_logs()
    factors, codes = options.replication_factor, []
    try:
        for factor in factors:
            record = options.record
            if record is not None and len(factors) > 1:
                record /= f"rf{factor}"
            codes.append(_run(Truth(options.seed, factor), options.seconds, record))
    except TidemarkError as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("chaos: interrupted", file=sys.stderr)
        return 130
    return max(codes)


def _run(truth: Truth, seconds: float, record: Path | None) -> int:
    """One run on a new cluster and its verdict."""
    _report(f"seed {truth.seed}, replication factor {truth.replication_factor}")
    folder = Path(tempfile.mkdtemp(prefix="tidemark-chaos-"))
    try:
        run(folder, seconds, truth, _report)
        kept = record or folder / "record"
        _keep(folder, kept, truth)
        return judge(kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(folder: Path, record: Path, truth: Truth) -> None:
    record.mkdir(parents=True, exist_ok=True)
    for name in (EVENTS, ACKNOWLEDGED):
        with (
            (folder / name.removesuffix(".gz")).open("rb") as plain,
            gzip.open(record / name, "wb") as packed,
        ):
            shutil.copyfileobj(plain, packed)
    (record / TRUTH).write_text(truth.as_json(), encoding="utf-8")


def judge(record: Path) -> int:
    """Prints and writes the table and the verdict; 0 where it is good, else 1."""
    truth = parse_truth((record / TRUTH).read_text(encoding="utf-8"))
    caused = join(truth.faults, replay(record / EVENTS))
    reasons = [*failures(caused), *(f"a lost record: {text}" for text in truth.lost[:5])]
    if truth.error is not None:
        reasons.append(f"the run ended early: {truth.error}")
    counts = (
        f"{counted(len(truth.faults), 'fault')} at replication factor {truth.replication_factor}, "
        f"seed {truth.seed}; {counted(truth.acknowledged, 'acknowledged record')}, "
        f"{len(truth.lost)} lost, {sum(truth.removed.values())} removed by faults; {GROUPS} groups"
    )
    one_group = totals(replay(record / EVENTS, 1))
    lines = [
        "total in one group, as `tidemark replay` folds",
        *(f"    {line}" for line in one_group),
        counts,
        *(f"FAILED: {reason}" for reason in reasons),
        *(() if reasons else ("passed",)),
    ]
    text = table(caused) + "".join(line + "\n" for line in lines)
    (record / TABLE).write_text(text, encoding="utf-8")
    print(text, end="", flush=True)
    return 1 if reasons else 0


def _report(line: str) -> None:
    print(line, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    add = parser.add_argument
    add("--seconds", type=float, default=300.0, help="the length of a run (300)")
    add("--seed", type=int, default=random.randrange(10_000), help="of the faults (random)")
    add("--replication-factor", type=int, nargs="+", default=[3, 2], choices=(2, 3))
    add("--record", type=Path, metavar="DIR", help="keep the recording here")
    add("--judge", type=Path, nargs="+", metavar="DIR", help="judge recordings")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
