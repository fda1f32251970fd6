"""What an escrow holds and reads beside faults that lose nothing, and for how long after them."""

from __future__ import annotations

import json
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from http.client import HTTPConnection, HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tidemark.core.events import Batch, Observation

# What is held for longer after its cause is a fault of the escrow.
ALLOWED_SECONDS: Final = 5.0
_SECONDS: Final = 1.0


class Scrape(NamedTuple):
    """`held`: records by topic. The others count from the start of the process."""

    at: float
    held: dict[str, float]
    read_bytes: float
    cpu_seconds: float


class Watch:
    """Scrapes an escrow each second into a file, a line each; none while it does not answer."""

    def __init__(self, address: str, file: Path) -> None:
        self._address, self._file = address, file
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="escrow-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10 * _SECONDS)

    def _run(self) -> None:
        with self._file.open("w", encoding="utf-8") as lines:
            while not self._ended.wait(_SECONDS):
                connection = HTTPConnection(self._address, timeout=_SECONDS)
                try:
                    connection.request("GET", "/metrics")
                    scrape = _parse(connection.getresponse().read().decode(), time.time())
                except (OSError, HTTPException):
                    continue
                finally:
                    connection.close()
                lines.write(json.dumps(scrape) + "\n")


def _parse(text: str, at: float) -> Scrape:
    held, totals = dict[str, float](), defaultdict[str, float](float)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            totals[sample.name] += sample.value
            if sample.name == "tidemark_escrow_held_records":
                held[sample.labels["topic"]] = sample.value
    read, cpu = "tidemark_escrow_read_bytes_total", "process_cpu_seconds_total"
    return Scrape(at, held, totals[read], totals[cpu])


def read_scrapes(lines: Iterable[str]) -> list[Scrape]:
    return [Scrape(*json.loads(line)) for line in lines]


class _Alone:
    """Since when no committed record of a topic lies on one disk, by the passes."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._alone: defaultdict[str, set[int]] = defaultdict(set)
        # By topic, times and whether a partition is on one disk from then on.
        self._times: defaultdict[str, list[float]] = defaultdict(list)
        self._states: defaultdict[str, list[bool]] = defaultdict(list)
        for batch in batches:
            for event in batch.events:
                if isinstance(event, Observation):
                    self._see(event)

    def _see(self, shown: Observation) -> None:
        in_sync = shown.in_sync_replicas or []
        others = [s for s in shown.samples if s.broker != shown.leader and s.broker in in_sync]
        alone, states = self._alone[shown.topic], self._states[shown.topic]
        if any(each.error is None for each in others):
            alone.discard(shown.partition)
        else:
            alone.add(shown.partition)
        if not states or states[-1] != bool(alone):
            self._times[shown.topic].append(shown.observed_at)
            states.append(bool(alone))

    def seconds_since(self, topic: str, at: float) -> float:
        """0 while a partition of the topic is on one disk, or it was not seen yet."""
        index = bisect_right(self._times[topic], at) - 1
        if index < 0 or self._states[topic][index]:
            return 0.0
        return at - self._times[topic][index]

    def least(self, at: float) -> float:
        """The same of all topics."""
        return min((self.seconds_since(topic, at) for topic in [*self._times]), default=0.0)


def judge_escrow(
    scrapes: Sequence[Scrape], batches: Iterable[Batch]
) -> tuple[list[str], list[str]]:
    """What is told of it, and the reasons why the run fails."""
    if len(scrapes) < 2:
        return [], ["the escrow gave no metrics"]
    alone = _Alone(batches)
    late = {
        (topic, scrape.at): alone.seconds_since(topic, scrape.at)
        for scrape in scrapes
        for topic, records in scrape.held.items()
        if records
    }
    spans = list(pairwise(scrapes))
    # A process that was started again counts from 0.
    read = [max(0.0, new.read_bytes - old.read_bytes) for old, new in spans]
    used = [max(0.0, new.cpu_seconds - old.cpu_seconds) for old, new in spans]
    # A cause may begin within a second.
    quiet = [min(alone.least(old.at), alone.least(new.at)) for old, new in spans]
    doubled = sum(size for size, since in zip(read, quiet, strict=True) if since)
    needless = sum(size for size, since in zip(read, quiet, strict=True) if since > ALLOWED_SECONDS)
    longest = max(late.values(), default=0.0)
    failures = [
        f"the escrow held records of {topic} {seconds:.1f} s after another in-sync replica had them"
        for (topic, _), seconds in late.items()
        if seconds == longest > ALLOWED_SECONDS
    ]
    if needless:
        failures.append(
            f"the escrow read {needless / 1e6:.1f} MB more than {ALLOWED_SECONDS:.0f} s after all "
            "records were on two disks"
        )
    seconds = scrapes[-1].at - scrapes[0].at
    times = len({at for _, at in late})
    held = f"held in {times} of {len(scrapes)} scrapes, at most {longest:.1f} s after its cause"
    what = f"read {sum(read) / 1e6:.1f} MB, {doubled / 1e6:.1f} MB of it while all was on two disks"
    return [f"escrow: {held}; {what}; {100 * sum(used) / seconds:.1f} % of a core"], failures
