"""A run of a scenario. Each method that acts is one step, and one row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidemark_lab.model.replica_manager import broker as broker_actions
from tidemark_lab.model.replica_manager import (
    consumer,
    controller,
    follower,
    in_sync,
    leader,
    log_start,
    purgatory,
    stopping,
)
from tidemark_lab.model.replica_manager.delayed import FETCH_WAIT_MS, FetchIsolation
from tidemark_lab.model.replica_manager.state import ClusterModel, Consumer, Fact, record_names

Change = Callable[[ClusterModel, int], ClusterModel]
# A follower needs fewer fetches than this to catch up in any scenario.
MAX_FETCHES = 8


class RunStep(NamedTuple):
    """One step: the event, its effects, the cluster afterwards, the method that made it, and facts.

    `line` is the number of the script's line, by which runs under two protocols compare.
    """

    event: str
    effects: tuple[str, ...]
    cluster: ClusterModel
    method: str = ""
    line: int = 0
    facts: frozenset[Fact] = frozenset()


def _step_of_each(event: str, change: Change) -> Callable[..., None]:
    """A method that makes one step for each broker; `{}` in the event is its id."""

    def act(run: ScenarioRun, *brokers: int) -> None:
        run.for_each(brokers, event, change)

    return act


@dataclass
class ScenarioRun:
    """A cluster and the steps so far. `drawings` are (number of the step, title)."""

    cluster: ClusterModel
    steps: list[RunStep] = field(default_factory=list)
    drawings: list[tuple[int, str]] = field(default_factory=list)
    _method: str = ""
    _line: int = 0

    def __post_init__(self) -> None:
        self.steps.append(RunStep("initial state", (), self.cluster))

    def execute(self, *lines: str) -> None:
        """Runs a script. A line is the name of a method of this class and its arguments.

        `write 1 acks=1`, `learn 1 2`, `draw TITLE`: the arguments are numbers, `acks`, or a title.
        """
        for self._line, line in enumerate(filter(str.strip, lines), 1):
            name, *arguments = line.split()
            method = getattr(self, name)
            self._method = name
            if name == "draw":
                method(" ".join(arguments))
            else:
                options = dict(text.split("=") for text in arguments if "=" in text)
                plain = (text for text in arguments if "=" not in text)
                method(*(int(text) if text.isdecimal() else text for text in plain), **options)

    def draw(self, title: str) -> None:
        """Marks the current state to be drawn."""
        self.drawings.append((len(self.steps) - 1, title))

    def write(self, broker: int, count: int = 1, acks: str = "all", elsewhere: str = "") -> None:
        """A producer sends a request to the broker that it considers the leader."""
        first = self.cluster.next_record
        self._step(
            f"{record_names(tuple(range(first, first + count)))} sent to {broker}, acks={acks}",
            lambda cluster: leader.append_records_to_leader(
                cluster, broker, acks, count, elsewhere=bool(elsewhere)
            ),
        )

    def write_in(self, broker: int, transaction: str) -> None:
        """A producer sends one record of its open transaction, with acks=all."""
        self._step(
            f"m{self.cluster.next_record} of transaction {transaction} sent to {broker}",
            lambda cluster: leader.append_transactional(cluster, broker, transaction, "data"),
        )

    def end(self, broker: int, transaction: str, marker: str) -> None:
        """The transaction coordinator writes the marker that ends a transaction."""
        self._step(
            f"the coordinator writes m{self.cluster.next_record}, the {marker} marker of "
            f"{transaction}",
            lambda cluster: leader.append_transactional(cluster, broker, transaction, marker),
        )

    def subscribe(self, number: int, isolation: str = "read_uncommitted", rack: str = "") -> None:
        """A consumer starts at offset 0. `rack` is the broker in its rack. This is no step."""
        until = {
            "read_uncommitted": FetchIsolation.HIGH_WATERMARK,
            "read_committed": FetchIsolation.TXN_COMMITTED,
        }[isolation]
        started = Consumer(number, until, rack=int(rack) if rack else None)
        self.cluster = self.cluster.with_consumer(started)
        self.steps[-1] = self.steps[-1]._replace(cluster=self.cluster)

    def poll(self, *numbers: int) -> None:
        """Consumers fetch. One that still has a fetch at a broker does nothing."""
        for each in numbers:
            reader = self.cluster.consumer(each)
            source = reader.preferred_read_replica or self.cluster.controller.leader
            event = f"C{{}} fetches from offset {reader.position} of {source}"
            self.for_each((each,), event, consumer.poll)

    def read(self, *followers: int) -> None:
        """The first half of a fetch: the leader reads, and has not added it to a watcher list."""
        for each in followers:
            offset = self.cluster.broker(each).log_end_offset
            event = f"{{}} fetches from offset {offset}: the first attempt"
            self.for_each((each,), event, follower.read_messages)

    def delete_records(self, broker: int, offset: int) -> None:
        """An operator deletes the records below an offset."""
        self._step(
            f"DeleteRecords below offset {offset} sent to {broker}",
            lambda cluster: log_start.delete_records(cluster, broker, offset),
        )

    def fetch(self, *followers: int) -> None:
        """A follower's fetch reaches its leader."""
        self._method = "fetch"
        for each in followers:
            offset = self.cluster.broker(each).log_end_offset
            self.for_each((each,), f"{{}} fetches from offset {offset}", follower.fetch_messages)

    def receive(self, *followers: int) -> None:
        """A follower receives the response to its fetch."""
        self._method = "receive"
        self.for_each(followers, "{} gets the response", follower.process_partition_data)

    def receive_and_fetch(self, *followers: int) -> None:
        """Followers receive their responses and fetch again."""
        self.receive(*followers)
        self.fetch(*followers)

    def catch_up(self, *followers: int) -> None:
        """Fetches until the follower has all records of its leader, and the leader knows it."""
        for each in followers:
            for _ in range(MAX_FETCHES):
                if self.cluster.broker(each).leader in {None, each}:
                    break
                self.fetch(each)
                if self.cluster.broker(each).response is None:
                    break
                self.receive(each)

    def ask(self, *followers: int) -> None:
        """A new follower asks where to truncate (OffsetForLeaderEpoch), if it has to."""
        for each in followers:
            local = self.cluster.broker(each)
            if local.truncating:
                event = f"{{}} has no epoch to ask {local.leader} about"
                if local.epoch_cache:
                    epoch, _ = local.epoch_cache[-1]
                    event = f"{{}} asks {local.leader} where epoch {epoch} ends"
                self.for_each((each,), event, follower.end_offset_for_leader_epoch)

    def learn(self, *brokers: int) -> None:
        """Brokers learn the newest decision, the elected leader first.

        A broker for which the decision changes nothing has no step.
        """
        decision = self.cluster.controller
        for each in sorted(brokers, key=lambda broker: broker != decision.leader):
            local = self.cluster.broker(each)
            same_epoch = local.leader_epoch == decision.leader_epoch
            same = same_epoch and local.partition_epoch == decision.partition_epoch
            follows = same_epoch and decision.leader != each and local.leader is not None
            if not same and not follows:
                self.for_each((each,), "{} learns the decision", broker_actions.learn)

    def learn_late(self, broker: int, leader_epoch: int) -> None:
        """A broker learns a decision of an earlier leader epoch."""
        self._step(
            f"{broker} learns the decision of epoch {leader_epoch}, late",
            lambda cluster: broker_actions.learn_late(cluster, broker, leader_epoch),
        )

    def wait(self, ms: int, *fetching: int) -> None:
        """Time passes.

        The followers in `fetching` receive each response and fetch again. The others are stalled.
        """

        def change(cluster: ClusterModel) -> ClusterModel:
            for passed in range(0, ms, FETCH_WAIT_MS):
                cluster = broker_actions.pass_time(cluster, min(FETCH_WAIT_MS, ms - passed))
                for each in fetching:
                    if cluster.broker(each).response is not None:
                        cluster = follower.process_partition_data(cluster, each)
                        cluster = follower.fetch_messages(cluster, each)
            # Every round of an idle partition has the same effects.
            return replace(cluster, notes=tuple(dict.fromkeys(cluster.notes)))

        # With followers that fetch it is several events.
        self._method = "wait" if fetching else "pass"
        verb = "fetch" if len(fetching) > 1 else "fetches"
        meanwhile = f" while {' and '.join(map(str, fetching))} {verb}" if fetching else ""
        self._step(f"{ms:,} ms pass{meanwhile}", change)

    def shrink(self, broker: int) -> None:
        """A leader checks for members of the ISR that lag, unless its last request is pending."""
        if self.cluster.broker(broker).pending_in_sync_replicas is None:
            self.for_each((broker,), "{} checks for lagging followers", in_sync.maybe_shrink_isr)

    def grant(self, *leaders: int) -> None:
        """The controller responds to a leader's pending ISR request, if there is one."""
        for each in leaders:
            if self.cluster.broker(each).pending_in_sync_replicas is not None:
                self.for_each((each,), "the controller responds to {}", in_sync.alter_partition)

    def elect_preferred(self) -> None:
        """The controller runs a preferred election."""
        self._step("preferred election", controller.elect_preferred_leader)

    def elect_unclean(self) -> None:
        """An operator runs an unclean election."""
        self._step("an operator runs an unclean election", controller.elect_unclean_leader)

    # The second half of a fetch: a broker watches it, and tries again.
    watch = _step_of_each(
        "{} adds the fetch to its watcher list: the second attempt", purgatory.watch
    )
    # A broker appends to another partition that the same fetches read.
    append_elsewhere = _step_of_each(
        "{} appends a record to another partition", purgatory.append_elsewhere
    )
    # The high watermark of another partition reaches the records of the same requests.
    commit_elsewhere = _step_of_each(
        "the other partition of the request to {} is committed", purgatory.commit_elsewhere
    )
    # The reaper of a broker purges its watcher lists.
    purge = _step_of_each("{} purges its watcher lists", purgatory.purge)
    # Brokers write their high watermarks to disk.
    checkpoint = _step_of_each("{} writes its checkpoint", broker_actions.checkpoint)
    # The operating system writes a log's pages to disk.
    flush = _step_of_each("the log of {} is flushed", broker_actions.flush)
    # A broker flushes its log, and knows it.
    force = _step_of_each("{} flushes its log", broker_actions.force)
    # Brokers write their recovery points and log starts to disk.
    checkpoint_log = _step_of_each("{} writes its log checkpoints", broker_actions.checkpoint_log)
    # A broker process dies. Its machine does not.
    kill = _step_of_each("{} is killed", stopping.kill)
    # A machine fails and loses what it did not flush.
    lose_power = _step_of_each("{} loses power", broker_actions.lose_power)
    # A controlled shutdown.
    shut_down = _step_of_each("{} shuts down", broker_actions.shut_down)
    # A broker starts and registers.
    start = _step_of_each("{} starts", broker_actions.start)
    # The controller's sessions with brokers expire, one after another.
    fence = _step_of_each("the controller marks {} as down", controller.fence)
    # A broker that never stopped reaches the controller again.
    register = _step_of_each("{} reaches the controller again", controller.register)

    def for_each(self, brokers: tuple[int, ...], event: str, change: Change) -> None:
        """One step for each broker; `{}` in the event is its id."""
        for each in brokers:
            self._step(event.format(each), lambda cluster, each=each: change(cluster, each))  # type: ignore[misc]

    def _step(self, event: str, change: Callable[[ClusterModel], ClusterModel]) -> None:
        before = self.cluster
        after = change(before.without_notes())
        after = after.with_notes(*_decision_notes(before, after))
        self.cluster = after.without_notes()
        step = RunStep(event, after.notes, self.cluster, self._method, self._line, after.facts)
        self.steps.append(step)


def _decision_notes(before: ClusterModel, after: ClusterModel) -> tuple[str, ...]:
    """A note on the controller's decision, if the leader or its epoch changed."""
    old, new = before.controller, after.controller
    if (old.leader, old.leader_epoch) == (new.leader, new.leader_epoch):
        return ()
    leader = "no leader" if new.leader is None else f"{new.leader} becomes leader"
    if new.leader is not None and new.leader == old.leader:
        leader = f"{new.leader} stays leader"
    return (f"decision: {leader} in epoch {new.leader_epoch}",)
