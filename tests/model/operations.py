"""Anything that can happen to the replica manager's cluster, drawn at random, and what must hold after each step."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tidemark.model.protocols import PROTOCOLS
from tidemark.model.replica_manager.broker import create
from tidemark.model.replica_manager.state import Cluster
from tidemark.model.scenarios.play import Play

Step = Callable[[Play, int], None]


def _fence_the_dead(play: Play, broker: int) -> None:
    if not play.cluster.broker(broker).running and broker in play.cluster.controller.alive:
        play.fence(broker)


def _start(play: Play, broker: int) -> None:
    # ZooKeeper lets a broker register again only after its old session was missed, or kept.
    if not play.cluster.broker(broker).running:
        play.start(broker)


def _stop(how: str) -> Step:
    def stop(play: Play, broker: int) -> None:
        if play.cluster.broker(broker).running:
            getattr(play, how)(broker)

    return stop


STEPS: dict[str, Step] = {
    "write acks=1": lambda play, broker: play.write(broker, acks="1"),
    "write acks=all": lambda play, broker: play.write(broker, acks="all"),
    "fetch": lambda play, broker: play.fetch(broker),
    "receive": lambda play, broker: play.receive(broker),
    "ask": lambda play, broker: play.ask(broker),
    "catch up": lambda play, broker: play.catch_up(broker),
    "learn": lambda play, broker: play.learn(broker),
    "short wait": lambda play, _: play.wait(500),
    "long wait": lambda play, _: play.wait(31_000),
    "shrink": lambda play, broker: (
        play.shrink(broker) if play.cluster.broker(broker).leads else None
    ),
    "grant": lambda play, broker: play.grant(broker),
    "checkpoint": lambda play, broker: play.checkpoint(broker),
    "flush": lambda play, broker: play.flush(broker),
    "kill": _stop("kill"),
    "shut down": _stop("shut_down"),
    "fence": _fence_the_dead,
    "start": _start,
    "preferred": lambda play, _: play.elect_preferred(),
}
# What is common is drawn more often: a cluster that only dies shows little.
WEIGHTS = [
    4 if name in {"fetch", "receive", "learn", "write acks=all", "grant", "ask"} else 1
    for name in STEPS
]


def random_play(
    protocol: str, brokers: int, min_isr: int, random: Random, steps: int, lossy: int | None = None
) -> Play:
    """A random run. `lossy`: the one broker whose machine may lose power."""
    play = Play(create(PROTOCOLS[protocol], brokers, min_isr))
    for _ in range(steps):
        name = random.choices(list(STEPS), WEIGHTS)[0]
        broker = random.randint(1, brokers)
        if lossy == broker and name == "kill" and play.cluster.broker(broker).running:
            play.lose_power(broker)
        else:
            STEPS[name](play, broker)
    return play


def check_offsets(before: Cluster, after: Cluster) -> None:
    """What holds under every protocol, whatever fails."""
    for old, new in zip(before.brokers, after.brokers, strict=True):
        assert 0 <= new.high_watermark <= new.log_end_offset
        assert 0 <= new.disk.flushed <= new.log_end_offset
        if old.leads and new.leads and old.leader_epoch == new.leader_epoch:
            assert new.high_watermark >= old.high_watermark, "a leader's high watermark moved back"
            assert new.log[: old.log_end_offset] == old.log, "a leader's log was cut"
        if after.protocol.leader_epochs:
            starts = [start for _, start in new.epoch_cache]
            epochs = [epoch for epoch, _ in new.epoch_cache]
            assert starts == sorted(starts) and epochs == sorted(set(epochs))
            for offset, record in enumerate(new.log):
                assert (
                    max(epoch for epoch, start in new.epoch_cache if start <= offset)
                    == record.epoch
                )
        # Whoever waits has a reason to: nothing that would have woken it has happened.
        assert all(
            new.high_watermark < each.required_offset and after.now_ms < each.deadline_ms
            for each in new.produce_purgatory
        )
        assert all(
            each.offset == new.log_end_offset and after.now_ms < each.deadline_ms
            for each in new.fetch_purgatory
        )
        assert new.leads or not (new.produce_purgatory or new.fetch_purgatory)
    assert after.committed[: len(before.committed)] == before.committed
    assert set(after.acked) <= set(after.committed)


def check_leader(cluster: Cluster) -> None:
    """LeaderCompleteness: who was elected, and knows it, has all that was committed."""
    decided, shown = cluster.controller, cluster.committed
    for each in cluster.brokers:
        if each.leads and each.id == decided.leader and each.leader_epoch == decided.leader_epoch:
            assert each.log[: len(shown)] == shown, f"leader {each.id} lacks committed records"


def check_candidates(cluster: Cluster) -> None:
    """StrongIsr, and LeaderCandidateCompleteness of KIP-966: whoever may be elected has all that was committed."""
    decided, shown = cluster.controller, cluster.committed
    for broker in (*decided.in_sync_replicas, *decided.eligible_leader_replicas):
        assert cluster.broker(broker).log[: len(shown)] == shown, (
            f"{broker} may be elected and lacks committed records"
        )
