"""What happens to a cluster: scripts of faults, drawn from a seed before the history runs.

Each fault draws from its own seed. So a script without one of them is the same history otherwise,
as far as it can be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, NamedTuple

from tests.histories.broker import Broker
from tests.histories.partition import TOPICS, Partition
from tests.histories.world import World


class Fault(NamedTuple):
    """Happens after pass `number`; `duration` in passes, for those that end by themselves.

    `place`: the partition that it is about, counted round. Faults of a broker hit all of its
    partitions.
    """

    number: int
    kind: str
    seed: int
    duration: int
    place: int


Undo = Callable[[], None]
Action = Callable[[World, Partition, Random], Undo | None]


def _any(world: World, partition: Partition, rng: Random) -> Broker:
    """Of a replica, mostly; of the leader more often than of another."""
    state = partition.state
    if state.leader in world.brokers and rng.random() < 0.5:
        return world.brokers[state.leader]
    return world.brokers[rng.choice(state.replicas)]


def _until_start(ends: Callable[[World, Broker, Random], None]) -> Action:
    """A broker's process ends, and starts after a while."""

    def action(world: World, partition: Partition, rng: Random) -> Undo:
        broker = _any(world, partition, rng)
        ends(world, broker, rng)
        return lambda: world.start(broker)

    return action


def _replace_disk(world: World, broker: Broker, rng: Random) -> None:
    world.crash(broker, rng)
    for replica in broker.replicas:
        replica.replace_disk()


def _power_failure_everywhere(world: World, partition: Partition, rng: Random) -> Undo:
    down = list(world.brokers.values())
    rng.shuffle(down)
    for broker in down:
        world.crash(broker, rng, lossy=True)
    return partial(_start, world, down)


def _start(world: World, brokers: list[Broker]) -> None:
    for broker in brokers:
        world.start(broker)


def _attribute(name: str) -> Action:
    def action(world: World, partition: Partition, rng: Random) -> Undo:
        broker = _any(world, partition, rng)
        setattr(broker, name, True)
        return lambda: setattr(broker, name, False)

    return action


def _hold(world: World, partition: Partition, rng: Random) -> Undo:
    world.controller.held = True
    return lambda: setattr(world.controller, "held", False)


def _preferred(world: World, partition: Partition, rng: Random) -> None:
    if not world.controller.held:
        partition.controlled.elect_preferred()


def _unclean(world: World, partition: Partition, rng: Random) -> Undo:
    """The last in-sync replicas stop, one by one; then the operator, or the topic, allows it."""
    for number in partition.state.in_sync:
        world.crash(world.brokers[number], rng)
        world.controller.fence(number)
    partition.controlled.elect_uncleanly()
    return partial(_start, world, [b for b in world.brokers.values() if not b.up])


def _others_fail(world: World, partition: Partition, rng: Random) -> Undo:
    """The leader is left alone in the in-sync set."""
    state = partition.state
    down = [world.brokers[b] for b in state.replicas if b != state.leader]
    for broker in down:
        world.crash(broker, rng)
        if not world.controller.held:
            world.controller.fence(broker.number)
    return partial(_start, world, down)


def _last_fails(world: World, partition: Partition, rng: Random) -> Undo | None:
    """The leader loses power or is killed. Rarely it stops in good order, and stays eligible."""
    broker = world.brokers.get(partition.state.leader)
    if broker is None:
        return None
    dice = rng.random()
    if dice < 0.2:
        world.stop(broker)
    else:
        world.crash(broker, rng, lossy=dice < 0.7)
        if not world.controller.held:
            world.controller.fence(broker.number)
    return partial(world.start, broker)


def _leave(world: World, partition: Partition, rng: Random) -> None:
    """A replica stops with what it has. A leader takes records along that no other replica has."""
    broker = _any(world, partition, rng)
    replica = partition.replicas[broker.number]
    if replica.serves() and rng.random() < 0.8:
        replica.append(rng.randint(1, 20))
    world.crash(broker, rng)
    world.left[partition.index] = broker.number


def _return(world: World, partition: Partition, rng: Random) -> Undo:
    """It comes back when all others are gone, and the topic allows it to lead."""
    controller, controlled = world.controller, partition.controlled
    left = world.brokers[world.left.get(partition.index, 1)]
    down = [b for b in world.brokers.values() if b is not left]
    for broker in down:
        if rng.random() < 0.7:
            world.crash(broker, rng)
        else:
            broker.cut_off = True
        if not controller.held:
            controller.fence(broker.number)
    before, controlled.unclean = controlled.unclean, True
    world.start(left)

    def undo() -> None:
        controlled.unclean = before
        for broker in down:
            broker.cut_off = False
            world.start(broker)

    return undo


def _elect_uncleanly(world: World, partition: Partition, rng: Random) -> None:
    if not world.controller.held:
        partition.controlled.elect_uncleanly()


def _fence_leader(world: World, partition: Partition, rng: Random) -> None:
    """The heartbeats of the leader come too late once: it loses its partitions and goes on."""
    leader = partition.state.leader
    if leader in world.brokers and not world.controller.held:
        world.controller.fence(leader)


def _reassign(world: World, partition: Partition, rng: Random) -> None:
    brokers = sorted(world.brokers)
    count = rng.choice([len(partition.state.replicas)] * 3 + [min(len(brokers), 4), 1])
    if world.controller.held:
        return
    partition.controlled.reassign(tuple(rng.sample(brokers, min(count, len(brokers)))))


def _recreate(world: World, partition: Partition, rng: Random) -> None:
    if not world.controller.held and partition.state.exists:
        partition.controlled.delete()
        brokers = sorted(world.brokers)
        partition.controlled.create(tuple(rng.sample(brokers, len(partition.state.replicas))))


def _recreate_filled(world: World, partition: Partition, rng: Random) -> Undo | None:
    """Created again and filled: below the old high watermark, or past it. Epoch 0 may be empty."""
    if world.controller.held or not partition.state.exists:
        return None
    before = partition.truth.high_watermarks[-1]
    _recreate(world, partition, rng)
    if rng.random() < 0.4:
        world.controller.fence(partition.state.leader)
    count = round(before * rng.choice([0.3, 0.9, 1.0, 1.2, 2.0])) + rng.randint(0, 3)

    def fill() -> None:
        leader = partition.legitimate_leader()
        if leader is not None and count:
            leader.append(count)

    return fill


def _delete_topic(world: World, partition: Partition, rng: Random) -> Undo:
    controlled = partition.controlled
    controlled.delete()
    replicas = partition.state.replicas
    return lambda: controlled.create(replicas) if not partition.state.exists else None


def _burst(world: World, partition: Partition, rng: Random) -> Undo:
    before = world.pace.produce
    world.pace.produce = rng.choice([0.0, 0.0, 1.0])

    def undo() -> None:
        world.pace.produce = before

    return undo


def _delete_records(world: World, partition: Partition, rng: Random) -> None:
    partition.delete_records(rng)


def _compact(world: World, partition: Partition, rng: Random) -> None:
    """The cleaners of some replicas run, each up to a point of its own. Keys repeat often."""
    if not partition.controlled.compacts:
        return
    for replica in partition.replicas.values():
        log = replica.log
        if log is not None and replica.broker.runs and rng.random() < 0.7:
            end = rng.randint(log.start, log.high_watermark)
            partition.truth.compact(log.compact(end, rng.choice([2, 5, 50])))


def _move(world: World, partition: Partition, rng: Random) -> None:
    """Some replicas move between log directories."""
    for replica in partition.replicas.values():
        if replica.log is not None and replica.broker.up and rng.random() < 0.5:
            replica.log.move()


def _restore(world: World, partition: Partition, rng: Random) -> None:
    """All brokers stop; the controller's metadata is restored from a backup; they start."""
    brokers, lower = list(world.brokers.values()), rng.randint(1, 6)
    for broker in brokers:
        world.crash(broker, rng)
    for each in world.partitions:
        if each.state.exists:
            each.truth.restore(each.controlled.restore(lower))
    for broker in brokers:
        broker.clean = True
        world.start(broker)


def _policy(world: World, partition: Partition, rng: Random) -> None:
    """The topic's policy becomes the other one."""
    partition.controlled.compacts = not partition.controlled.compacts


def _delete_and_crash(world: World, partition: Partition, rng: Random) -> Undo:
    """A deletion that no log start checkpoint has yet when brokers crash: log starts return."""
    leader = partition.legitimate_leader()
    if leader is not None and leader.log is not None and leader.log.high_watermark > 0:
        log = leader.log
        to = log.high_watermark if rng.random() < 0.7 else rng.randint(0, log.high_watermark)
        partition.truth.delete(log.delete_before(to))
        for replica in partition.replicas.values():
            if replica is not leader and rng.random() < 0.7:
                world.fetch_once(replica, rng)
    down = [broker for broker in world.brokers.values() if rng.random() < 0.7]
    rng.shuffle(down)
    for broker in down:
        world.crash(broker, rng)
    return partial(_start, world, down)


ACTIONS: Final[dict[str, Action]] = {
    "crash": _until_start(World.crash),
    "stop": _until_start(lambda world, broker, _: world.stop(broker)),
    "pause": _attribute("paused"),
    "cut_off": _attribute("cut_off"),
    "unheard": _attribute("unheard"),
    "stuck": _attribute("stuck"),
    "frozen": _attribute("frozen"),
    "hold": _hold,
    "preferred": _preferred,
    "fence_leader": _fence_leader,
    "reassign": _reassign,
    "delete_records": _delete_records,
    "delete_and_crash": _delete_and_crash,
    "burst": _burst,
    "compact": _compact,
    "policy": _policy,
    "move": _move,
    "restore": _restore,
    "recreate": _recreate,
    "recreate_filled": _recreate_filled,
    "delete_topic": _delete_topic,
    "power_failure": _until_start(partial(World.crash, lossy=True)),
    "power_failure_everywhere": _power_failure_everywhere,
    "new_disk": _until_start(_replace_disk),
    "unclean": _unclean,
    "elect_uncleanly": _elect_uncleanly,
    "others_fail": _others_fail,
    "last_fails": _last_fails,
    "leave": _leave,
    "return": _return,
}
# Faults that matter together: (kind, passes after the first one, how often it belongs to them).
STORIES: Final[dict[str, list[tuple[str, int, float]]]] = {
    "old replica returns": [
        ("leave", 0, 1.0),
        ("burst", 1, 0.5),
        ("delete_records", 6, 0.4),
        ("return", 9, 1.0),
        ("preferred", 16, 0.3),
    ],
    "rolling restart": [("stop", 4 * number, 1.0) for number in range(9)],
}
# Kind -> weight. A benign history loses nothing that a correct Kafka keeps.
BENIGN: Final = {
    "crash": 3,
    "stop": 4,
    "pause": 3,
    "cut_off": 2,
    "unheard": 2,
    "stuck": 2,
    "frozen": 1,
    "hold": 1,
    "preferred": 2,
    "fence_leader": 2,
    "reassign": 2,
    "delete_records": 3,
    "burst": 3,
    "recreate": 0.4,
    "delete_topic": 0.2,
    "delete_and_crash": 1,
    "rolling restart": 0.3,
}
HOSTILE: Final = BENIGN | {
    "power_failure": 4,
    "power_failure_everywhere": 1,
    "new_disk": 2,
    "unclean": 3,
    "elect_uncleanly": 3,
    "old replica returns": 6,
}


def draw(rng: Random, passes: int, count: int, weights: dict[str, float]) -> list[Fault]:
    kinds, found = list(weights), []
    for kind in rng.choices(kinds, list(weights.values()), k=count):
        number, place = rng.randint(5, max(6, passes - 10)), rng.randrange(len(TOPICS))
        for part, after, share in STORIES.get(kind, [(kind, 0, 1.0)]):
            later = number + after + (rng.randint(0, 3) if after else 0)
            duration = 2 if kind == "rolling restart" else rng.choice([1, 2, 3, 5, 12, 25])
            fault = Fault(later, part, rng.getrandbits(30), duration, place)
            if rng.random() < share:
                found.append(fault)
    return sorted(found)
