"""Histories with one guilty broker: whom do the warnings and critical alerts name?

`python -m tests.histories.blame --seed N --count M [--kind KIND]`. Partitions share the brokers,
each of which leads some and follows others. One thing is wrong for a while, and only it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from tests.histories.collector import Written
from tests.histories.history import History, Script
from tests.histories.judge import folds
from tests.histories.modes import MODES
from tests.histories.partition import Placement
from tests.histories.world import ALL, World
from tidemark.core.records import Alert, decode_record

BEGINS: Final = 15
DOWN: Final = "KafkaBrokerDown"
HEALED_PASSES: Final = 25
# What a fault is given: the world, whom it is about, and another broker.
Begin = Callable[[World, int, int, Random], None]


class Kind(NamedTuple):
    """`names_guilty`: one broker is to blame. A link has two ends, and planned work nobody."""

    begin: Begin
    names_guilty: bool = True


def _slow(world: World, leader: int | None, follower: int | None, rng: Random) -> None:
    world.slow.append((leader, follower, rng.choice([9.0, 12.0, 16.0])))


def _slow_disk(world: World, guilty: int, _: int, rng: Random) -> None:
    _slow(world, guilty, None, rng)
    _slow(world, None, guilty, rng)


def _refused(world: World, guilty: int, other: int, rng: Random) -> None:
    """A follower dies, returns and holds every record; the leader does not add it."""
    world.crash(world.brokers[other], rng)
    world.brokers[guilty].refused = True


def _prefer(world: World, _: int, other: int, rng: Random) -> None:
    for each in world.partitions:
        each.controlled.elect_preferred()


def _burst(world: World, _: int, other: int, rng: Random) -> None:
    world.pace.produce, world.pace.batch = 1.0, 400


KINDS: Final[dict[str, Kind]] = {
    "slow leader": Kind(lambda world, guilty, _, rng: _slow(world, guilty, None, rng)),
    "slow follower": Kind(lambda world, guilty, _, rng: _slow(world, None, guilty, rng)),
    "slow link": Kind(_slow, names_guilty=False),
    "slow disk": Kind(_slow_disk),
    "refused in-sync sets": Kind(_refused),
    "dead": Kind(lambda world, guilty, _, rng: world.crash(world.brokers[guilty], rng)),
    "paused": Kind(lambda world, guilty, *_: setattr(world.brokers[guilty], "paused", True)),
    "stuck fetcher": Kind(lambda world, guilty, *_: setattr(world.brokers[guilty], "stuck", True)),
    "rolling restart": Kind(
        lambda world, _, other, rng: world.stop(world.brokers[other]), names_guilty=False
    ),
    "preferred elections": Kind(_prefer, names_guilty=False),
    "burst": Kind(_burst, names_guilty=False),
    "nothing": Kind(lambda *_: None, names_guilty=False),
}
BENIGN: Final = frozenset({"rolling restart", "preferred elections", "burst", "nothing"})


class Blame(NamedTuple):
    """What one history says. `alerts`: (alert, broker that it names) of all that ask for acts."""

    kind: str
    guilty: int
    other: int
    alerts: list[tuple[str, int | None]]
    written: list[Written]

    def verdict(self, alert: str, broker: int | None) -> str:
        if broker is None:
            return "nobody"
        if broker == self.guilty and KINDS[self.kind].names_guilty:
            return "guilty"
        if self.kind == "refused in-sync sets" and broker == self.other and alert == DOWN:
            # It is dead for a while.
            return "guilty"
        ends = (self.guilty, self.other) if self.kind == "slow link" else ()
        return "an end of the link" if broker in ends else "healthy"


def plan(seed: int, rng: Random) -> Script:
    brokers = rng.choice([3, 3, 4, 5, 6])
    numbers = list(range(1, brokers + 1))
    replicas = 2 if rng.random() < 0.15 else 3
    placements = []
    for number in range(rng.choice([6, 9, 12])):
        # Each broker leads as many; the followers are random.
        leader = number % brokers + 1
        others = rng.sample([b for b in numbers if b != leader], replicas - 1)
        placements.append(Placement((leader, *others), 1, unclean=False))
    pace = (1.0, 10, rng.choice([6.0, 9.0]), rng.choice([10.0, 20.0, 30.0]), ALL, 24)
    mode = MODES[rng.choice(["2.7", "3.7", "4.1", "4.1"])]
    passes = BEGINS + rng.choice([30, 45, 60]) + HEALED_PASSES
    return Script(
        seed, mode, True, passes, brokers, placements, pace, collectors=[(1, passes, 0.0)]
    )


def run(seed: int, kind: str | None = None) -> Blame:
    rng = Random(seed)
    chosen = kind or rng.choice(list(KINDS))
    script = plan(seed, rng)
    guilty, other = rng.sample(range(1, script.brokers + 1), 2)
    history, reducers = History(script), folds(script)
    world, alerts, written = history.world, [], list[Written]()
    for number in range(1, script.passes + 1):
        if number == BEGINS:
            KINDS[chosen].begin(world, guilty, other, rng)
        # What a fault stops for a moment only.
        if number == BEGINS + 8 and chosen in {"refused in-sync sets", "rolling restart"}:
            world.start(world.brokers[other])
        if number == script.passes - HEALED_PASSES:
            _heal(world)
        for group, batch in history.step(number):
            written.append(Written(group, batch))
            fold = reducers[group]
            fold.batch(batch)
            rows, fold.rows = fold.rows, []
            alerts += [row.value for row in rows if row.destination == "alerts" and row.value]
    named = []
    for value in alerts:
        alert = decode_record(value)
        assert isinstance(alert, Alert)
        if alert.state == "firing" and alert.labels["severity"] != "info":
            broker = alert.labels.get("broker")
            named.append((alert.labels["alertname"], None if broker is None else int(broker)))
    return Blame(chosen, guilty, other, named, written)


def _heal(world: World) -> None:
    world.slow.clear()
    for broker in world.brokers.values():
        broker.paused = broker.stuck = broker.refused = False
        if not broker.up:
            world.start(broker)


class Campaign:
    """`counts`: (kind, verdict) of each alert. `wrong`: an example of each alert that is wrong."""

    def __init__(self) -> None:
        self.counts = Counter[tuple[str, str]]()
        self.wrong: dict[tuple[str, str], str] = {}

    def run(self, seed: int, kind: str | None = None) -> None:
        blame = run(seed, kind)
        for name, broker in blame.alerts:
            verdict = blame.verdict(name, broker)
            self.counts[blame.kind, verdict] += 1
            if verdict == "healthy":
                example = f"seed {seed}: broker {broker}, guilty {blame.guilty} ({blame.other})"
                self.wrong.setdefault((blame.kind, name), example)

    def share(self, verdict: str) -> float:
        """Of the alerts of histories with one guilty broker; 0 where there is none."""
        of = [kind for kind, each in KINDS.items() if each.names_guilty]
        total = sum(n for (kind, _), n in self.counts.items() if kind in of)
        return sum(self.counts[kind, verdict] for kind in of) / total if total else 0.0

    @property
    def benign(self) -> int:
        """Healthy brokers that were named where nothing was wrong."""
        return sum(self.counts[kind, "healthy"] for kind in BENIGN)

    def report(self) -> None:
        for kind in KINDS:
            found = {v: n for (k, v), n in sorted(self.counts.items()) if k == kind}
            print(f"{kind:22} {found}")
        for (kind, name), example in sorted(self.wrong.items()):
            print(f"  {kind}: {name}, {example}")
        print(
            f"guilty {self.share('guilty'):.1%}, healthy {self.share('healthy'):.2%}, "
            f"nobody {self.share('nobody'):.1%}; benign {self.benign}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--kind", choices=list(KINDS))
    given = parser.parse_args()
    campaign = Campaign()
    for seed in range(given.seed, given.seed + given.count):
        campaign.run(seed, given.kind)
        print(f"\r{seed - given.seed + 1} of {given.count}", end="\r", file=sys.stderr, flush=True)
    campaign.report()
    return int(campaign.share("healthy") > 0.01 or campaign.benign > 0)


if __name__ == "__main__":
    sys.exit(main())
