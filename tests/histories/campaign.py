"""Many histories: their counts, their failures, and the events of the smallest one of each kind."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

from tests.histories.collector import Written
from tests.histories.findings import Finding
from tests.histories.history import Script, script
from tests.histories.judge import Judge, replay_in_two
from tests.histories.kinds import with_kind
from tests.histories.last_known import KIND, SEEN, TOLD, TOLD_SHARE
from tests.histories.partition import Partition
from tests.histories.shrink import shrink
from tests.histories.world import ORIGIN
from tidemark.core.codec import encode_batch
from tidemark.core.records import Alert, decode_record

# One history in so many is folded again, in two calls, from its encoded records.
SPLIT_EVERY = 20


class Campaign:
    """Even seeds are benign. `failures`: kind -> (seed, finding) of each history that has it.

    `kind`: all histories are of this one of `kinds`. `every`: those that are held back, too.
    Histories of one mode, or with mixed moments, are the usual ones.
    """

    def __init__(
        self,
        mode: str | None = None,
        *,
        mixes_moments: bool = False,
        kind: str | None = None,
        every: bool = False,
    ) -> None:
        self.counts = Counter[str]()
        self.failures: dict[str, list[tuple[int, Finding]]] = {}
        self._mode, self._mixes_moments = mode, mixes_moments
        self._kind, self._every = kind, every
        # Seeds with an election of a last known leader that no alert tells of.
        self.silent: list[int] = []

    def plan(self, seed: int) -> Script:
        usual = script(
            seed, benign=seed % 2 == 0, mode=self._mode, mixes_moments=self._mixes_moments
        )
        if self._mode is not None or self._mixes_moments:
            return usual
        return with_kind(usual, kind=self._kind, every=self._every)

    def run(self, seed: int) -> list[Finding]:
        plan = self.plan(seed)
        player = Judge(plan)
        result = player.run()
        self.counts.update(result.counts)
        self.counts["histories"] += 1
        self.counts[f"histories: {plan.kind or 'usual'}"] += 1
        if result.counts[TOLD] < result.counts[SEEN]:
            self.silent.append(seed)
        findings = result.findings
        split = seed % SPLIT_EVERY == 0
        if split and replay_in_two(result.written, player.history.plan.groups) != player.alerts:
            findings.append(Finding("split", 0, "two calls of the reducer give other alerts"))
        for finding in findings:
            self.failures.setdefault(finding.kind, []).append((seed, finding))
        return findings

    def play(self, first: int, count: int) -> None:
        """The histories of seeds from the first one on, and a report."""
        began = time.process_time()
        for seed in range(first, first + count):
            self.run(seed)
            done = seed - first + 1
            if done % 500 == 0:
                print(f"{done} histories, {self.summary()}", file=sys.stderr, flush=True)
        self.report(time.process_time() - began)

    @property
    def tells_enough(self) -> bool:
        """Whether alerts tell of most elections of a last known leader."""
        return self.counts[TOLD] >= TOLD_SHARE * self.counts[SEEN]

    def summary(self) -> str:
        kinds = {kind: len(found) for kind, found in sorted(self.failures.items())}
        return f"{self.counts['passes']} passes, failures {kinds or 'none'}"

    def report(self, seconds: float) -> None:
        for name, count in sorted(self.counts.items()):
            print(f"{count:9} {name}")
        done = self.counts["histories"]
        print(f"{done} histories in {seconds:.1f} s of CPU, {done / seconds:.1f} per second")
        if self.silent:
            print(f"untold {KIND} elections: seeds {self.silent[:20]}")
        for kind, found in sorted(self.failures.items()):
            seed, finding = found[0]
            seeds = ", ".join(str(seed) for seed, _ in found[:8])
            print(f"\n{len(found)} x {kind} (seeds {seeds})")
            print(f"    seed {seed}, pass {finding.number}: {finding.text}")

    def write(self, folder: Path) -> None:
        """The shrunk events of the shortest failing history of each kind, and its script."""
        folder.mkdir(parents=True, exist_ok=True)
        for kind, found in self.failures.items():
            if kind == "split":
                continue
            best = None
            for seed, _ in found[:5]:
                plan, result = shrink(self.plan(seed), kind)
                if best is None or plan.passes < best[0].passes:
                    best = plan, result
            assert best is not None
            name = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")
            write_events(folder / f"histories-{name}.jsonl", best[1].written)
            print(f"{name}: {best[0]}")


def write_events(path: Path, written: list[Written]) -> None:
    """What `tidemark replay` reads."""
    path.write_bytes(b"".join(encode_batch(batch) + b"\n" for _, batch in written))


def show(plan: Script) -> None:
    """One history: its script, elections, cuts, and every alert."""
    print(plan)
    player = Judge(plan)
    player.run()
    lines = [line for p in player.history.world.partitions for line in _lines(p)]
    for alerts in player.alerts:
        for value in alerts:
            alert = decode_record(value)
            assert isinstance(alert, Alert)
            text = alert.annotations["description"]
            name = alert.labels["alertname"]
            lines.append((alert.at - ORIGIN, f"{alert.state} {name}: {text}"))
    for at, line in sorted(lines):
        print(f"{at:8.3f} {line}")
    for finding in player.findings.found:
        print(finding)


def _lines(partition: Partition) -> list[tuple[float, str]]:
    truth, topic = partition.truth, partition.topic
    lines = [(e.at, f"{topic}: elected {e}") for e in truth.elections]
    lines += [
        (c.at, f"{topic}: cut {c._replace(ids=c.ids[:3])} ({len(c.ids)} ids)") for c in truth.cuts
    ]
    lines += [
        (x.at, f"{topic}: leads {x._replace(lost=frozenset())} lost={len(x.lost)}")
        for x in truth.leaderships
    ]
    return [*lines, *((r.at, f"{topic}: record {r}") for r in partition.controlled.records)]
