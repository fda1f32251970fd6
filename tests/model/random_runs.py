"""Random runs of the replica manager, and what must hold after each of their steps."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tidemark_lab.model.protocols import PROTOCOLS
from tidemark_lab.model.replica_manager.broker import create
from tidemark_lab.model.replica_manager.state import Broker, ClusterModel
from tidemark_lab.model.scenarios.run import ScenarioRun

Step = Callable[[ScenarioRun, int], None]
Condition = Callable[[ClusterModel, Broker], bool]


def _step_if(condition: Condition, step: Step) -> Step:
    def guarded(run: ScenarioRun, broker: int) -> None:
        if condition(run.cluster, run.cluster.broker(broker)):
            step(run, broker)

    return guarded


def _is_running(_cluster: ClusterModel, broker: Broker) -> bool:
    return broker.running


def _is_dead_but_not_fenced(cluster: ClusterModel, broker: Broker) -> bool:
    return not broker.running and broker.id in cluster.controller.alive


STEPS: dict[str, Step] = {
    "write acks=1": lambda run, broker: run.write(broker, acks="1"),
    "write acks=all": lambda run, broker: run.write(broker, acks="all"),
    "fetch": ScenarioRun.fetch,
    "receive": ScenarioRun.receive,
    "ask": ScenarioRun.ask,
    "catch up": ScenarioRun.catch_up,
    "learn": ScenarioRun.learn,
    "short wait": lambda run, _: run.wait(500),
    "long wait": lambda run, _: run.wait(31_000),
    "shrink": _step_if(lambda _, broker: broker.leads, ScenarioRun.shrink),
    "grant": ScenarioRun.grant,
    "checkpoint": ScenarioRun.checkpoint,
    "flush": ScenarioRun.flush,
    "kill": _step_if(_is_running, ScenarioRun.kill),
    "shut down": _step_if(_is_running, ScenarioRun.shut_down),
    "fence": _step_if(_is_dead_but_not_fenced, ScenarioRun.fence),
    # Also a restart that the controller of ZooKeeper does not notice: the broker stays in sync.
    "start": _step_if(lambda _, broker: not broker.running, ScenarioRun.start),
    "preferred": lambda run, _: run.elect_preferred(),
}
# Common steps are more likely: a cluster in which brokers only die shows little.
WEIGHTS = [
    4 if name in {"fetch", "receive", "learn", "write acks=all", "grant", "ask"} else 1
    for name in STEPS
]


def random_run(
    protocol: str, brokers: int, min_isr: int, random: Random, steps: int, lossy: int | None = None
) -> ScenarioRun:
    """A random run. Only broker `lossy` can lose power."""
    run = ScenarioRun(create(PROTOCOLS[protocol], brokers, min_isr))
    for _ in range(steps):
        name = random.choices(list(STEPS), WEIGHTS)[0]
        broker = random.randint(1, brokers)
        if lossy == broker and name == "kill" and run.cluster.broker(broker).running:
            run.lose_power(broker)
        else:
            STEPS[name](run, broker)
    return run


def check_offsets(before: ClusterModel, after: ClusterModel) -> None:
    """What holds under every protocol and every fault."""
    for old, new in zip(before.brokers, after.brokers, strict=True):
        assert 0 <= new.high_watermark <= new.log_end_offset
        assert 0 <= new.disk.flushed <= new.log_end_offset
        if old.leads and new.leads and old.leader_epoch == new.leader_epoch:
            assert new.high_watermark >= old.high_watermark, "a leader's high watermark moved back"
            assert new.log[: old.log_end_offset] == old.log, "a leader's log was truncated"
        if after.protocol.leader_epochs:
            starts = [start for _, start in new.epoch_cache]
            epochs = [epoch for epoch, _ in new.epoch_cache]
            assert starts == sorted(starts) and epochs == sorted(set(epochs))
            for offset, record in enumerate(new.log):
                cached = max(epoch for epoch, start in new.epoch_cache if start <= offset)
                assert cached == record.epoch
        # Every delayed operation still has a reason to wait.
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


def check_leader(cluster: ClusterModel) -> None:
    """LeaderCompleteness: the elected leader, once it leads, holds all committed records."""
    decision, committed = cluster.controller, cluster.committed
    for each in cluster.brokers:
        elected = (each.id, each.leader_epoch) == (decision.leader, decision.leader_epoch)
        if each.leads and elected:
            assert each.log[: len(committed)] == committed, f"{each.id} lacks committed records"


def check_candidates(cluster: ClusterModel) -> None:
    """StrongIsr, and LeaderCandidateCompleteness of KIP-966.

    Every replica that can be elected cleanly holds all committed records.
    """
    decision, committed = cluster.controller, cluster.committed
    for broker in (*decision.in_sync_replicas, *decision.eligible_leader_replicas):
        assert cluster.broker(broker).log[: len(committed)] == committed, (
            f"{broker} can be elected and lacks committed records"
        )
