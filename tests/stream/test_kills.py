"""Kills of the stream and of the exporter, and other versions in their place, lose nothing.

`KILLS` is how often each kind of process is killed, 5 by default; `KILL_SEED` repeats the moments.
`UPGRADE_FROM` is the commit from which the upgrade begins; the default is the product before the
last change to it.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT, missing
from tests.stream.conftest import StreamProcess, start_notifier
from tests.stream.load import Load
from tests.stream.standalone import Standalone, on, standalone
from tests.stream.supervised import (
    KILLS,
    SEED,
    Supervised,
    executors,
    jvms,
    kill_one,
    python_workers,
    supervised,
)
from tests.stream.test_stream import LOAD, check_against_oracle, letters, posted, transitions
from tidemark.reduce.rows import RawRecord
from tidemark.settings import Settings
from tidemark_lab.brokers.receiver import WebhookReceiver, parse_alerts
from tidemark_lab.brokers.wait import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.soak]

# Fingerprint, status, start in milliseconds.
Transition = tuple[str, str, int]


class Exporters:
    """Each process that runs `tidemark export` posts to a receiver of its own."""

    def __init__(self, settings: Settings, folder: Path, stack: ExitStack) -> None:
        self._settings, self._folder, self._stack = settings, folder, stack
        self.receivers: list[WebhookReceiver] = []

    def start(self) -> subprocess.Popen[bytes]:
        receiver = self._stack.enter_context(WebhookReceiver())
        self.receivers.append(receiver)
        return start_notifier(self._settings, self._folder, receiver.url)

    def has_posted(self) -> bool:
        """Whether the newest process has."""
        return bool(self.receivers[-1].deliveries())

    def posts(self) -> list[list[list[Transition]]]:
        """The transitions of each post of each process, in order."""
        return [
            [posted(parse_alerts(payload, at)) for at, payload in receiver.deliveries()]
            for receiver in self.receivers
        ]


def check_posts(runs: list[list[list[Transition]]], expected: Counter[Transition]) -> int:
    """Each transition was posted, in order, and once. Returns how many posts were repeated.

    An exporter that is killed while a post is answered cannot know that the receiver has taken it:
    what its last post held may be posted once more by the next one, as its receiver's record shows.
    """
    posted: dict[Transition, tuple[int, int]] = {}
    repeated = set()
    for run, posts in enumerate(runs):
        for number, post in enumerate(posts):
            for transition in post:
                first = posted.setdefault(transition, (run, number))
                if first == (run, number):
                    continue
                assert first[0] < run, f"posted twice by one exporter: {transition}"
                behind = len(runs[first[0]]) - 1 - first[1]
                assert behind == 0, (
                    f"{transition} was posted again by exporter {run}, although {behind} posts of "
                    f"exporter {first[0]} followed the first"
                )
                repeated.add(first)
    assert posted.keys() == expected.keys()
    assert set(expected.values()) == {1}
    of_alert: dict[str, list[Transition]] = defaultdict(list)
    for transition in posted:
        of_alert[transition[0]].append(transition)
    for found in of_alert.values():
        assert found == sorted(found, key=lambda each: (each[2], each[1] == "resolved"))
    return len(repeated)


def batches(folder: Path) -> int:
    return sum(log.read_text().count('"event": "batch"') for log in folder.glob("*.log"))


Victims = Callable[[Supervised, Supervised, Standalone | None], list[int]]
VICTIMS: dict[str, Victims] = {
    "driver": lambda stream, _exporter, _spark: [stream.process.pid],
    "jvm": lambda stream, _exporter, _spark: jvms(stream.process.pid),
    "worker": lambda stream, _exporter, _spark: python_workers(stream.process.pid),
    "exporter": lambda _stream, exporter, _spark: [exporter.process.pid],
    "executor": lambda _stream, _exporter, spark: executors_of(spark),
}


def executors_of(spark: Standalone | None) -> list[int]:
    assert spark is not None
    return [pid for worker in spark.workers for pid in executors(worker.pid)]


@contextmanager
def cluster_of(kinds: Sequence[str], folder: Path) -> Iterator[Standalone | None]:
    """A standalone cluster where executors are killed, else none: local mode."""
    if "executor" not in kinds:
        yield None
        return
    with standalone(folder, workers=1) as spark:
        yield spark


def arrived(load: Load, settings: Settings, exporters: Exporters) -> list[RawRecord]:
    """All that was sent, once the stream has read it and the exporters have posted its alerts."""
    load.end()
    wait_until(lambda: len(letters(settings)) == LOAD.groups, 600, "end of the load")
    sent = load.publisher.close()
    expected = transitions(sent).keys()
    wait_until(
        lambda: expected <= {t for run in exporters.posts() for post in run for t in post},
        120,
        "posts of all alerts",
    )
    return sent


@pytest.mark.parametrize(
    "kinds", [("driver", "jvm", "worker", "exporter"), ("executor",)], ids=" ".join
)
def test_kills_at_random_moments_lose_and_double_nothing(
    kinds: tuple[str, ...], settings: Settings, tmp_path: Path
) -> None:
    moments = random.Random(SEED)
    print(f"\n{KILLS} kills of each, KILL_SEED={SEED}")
    with ExitStack() as stack:
        spark = stack.enter_context(cluster_of(kinds, tmp_path))
        verb = settings if spark is None else on(settings, spark, tmp_path / "checkpoint")
        exporters = Exporters(settings, tmp_path, stack)
        load = Load(settings)
        stream, exporter = stack.enter_context(
            supervised(lambda: StreamProcess(verb, tmp_path).process, exporters.start)
        )
        for kind in moments.sample(kinds * KILLS, len(kinds) * KILLS):
            before = batches(tmp_path)
            wait_until(lambda b=before: batches(tmp_path) > b, 400, "batch")  # type: ignore[misc]
            wait_until(exporters.has_posted, 120, "post")
            wait = moments.uniform(0.0, 2.0)
            time.sleep(wait)
            killed = kill_one(VICTIMS[kind](stream, exporter, spark), moments)
            print(f"killed {kind} {killed} {wait:.2f} s after batch {before + 1}", flush=True)
        sent = arrived(load, settings, exporters)
    check_against_oracle(settings, sent)
    expected = transitions(sent)
    repeated = check_posts(exporters.posts(), expected)
    print(f"{stream.starts} starts of the stream, {exporter.starts} of the exporter; ", end="")
    print(f"{len(expected)} transitions, 0 lost, 0 doubled, {repeated} posts in flight repeated")


def earlier_state(folder: Path) -> Path:
    """A copy of the source at UPGRADE_FROM, or before the last change to the product."""
    changes = ["git", "rev-list", "-2", "HEAD", "--", "streaming", "exporters"]
    ran = subprocess.run(changes, cwd=ROOT, capture_output=True, text=True, check=False)
    found = ran.stdout.split()
    if len(found) < 2:
        missing("this checkout has no history")
    archive = folder / "earlier.tar"
    chosen = os.environ.get("UPGRADE_FROM") or found[1]
    subprocess.run(["git", "archive", f"--output={archive}", chosen], cwd=ROOT, check=True)
    shutil.unpack_archive(archive, folder / "earlier", filter="data")
    print(f"\nfrom {chosen}, UPGRADE_FROM=")
    return folder / "earlier"


def test_an_upgrade_and_a_rollback_under_load_lose_and_double_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = earlier_state(tmp_path)
    with ExitStack() as stack:
        exporters, load = Exporters(settings, tmp_path, stack), Load(settings)
        for source in (earlier, ROOT, earlier):
            monkeypatch.setenv("PYTHONPATH", f"{source}/streaming:{source}/exporters")
            stream, exporter = StreamProcess(settings, tmp_path), exporters.start()
            stack.callback(stream.kill_tree)
            stack.callback(exporter.kill)
            stream.wait_for(lambda s=stream: len(s.lines("batch")) > 4, "batches")  # type: ignore[misc]
            wait_until(exporters.has_posted, 120, "post")
            if len(exporters.receivers) == 3:
                sent = arrived(load, settings, exporters)
            assert stream.terminate()[0] == 0
            exporter.terminate()
            assert exporter.wait(15) == 0
    # Of the posts alone: two versions may word an alert apart, and end it a pass apart.
    expected = transitions(sent)
    assert check_posts(exporters.posts(), expected) == 0
    print(f"{len(expected)} transitions, 0 lost, 0 doubled")
