"""The stage of a scenario: each method is one step, and so one row of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tidemark.model.replica_manager import broker as life
from tidemark.model.replica_manager import controller, follower, in_sync, leader
from tidemark.model.replica_manager.state import Cluster


class Row(NamedTuple):
    """One step: what was done, what came of it, and how everything stood afterwards."""

    done: str
    outcome: tuple[str, ...]
    cluster: Cluster


@dataclass
class Play:
    """A cluster and the steps so far. `pictures` are (number of rows before it, title)."""

    cluster: Cluster
    rows: list[Row] = field(default_factory=list)
    pictures: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rows.append(Row("the beginning", (), self.cluster))

    def picture(self, title: str) -> None:
        """Remembers to draw the logs as they are now."""
        self.pictures.append((len(self.rows), title))

    def write(self, broker: int, acks: str = "all") -> None:
        """A producer sends one record to a broker that it takes for the leader."""
        record = self.cluster.next_record
        self._step(
            f"m{record} to {broker}, acks={acks}",
            lambda cluster: leader.append_records_to_leader(cluster, broker, acks),
        )

    def fetch(self, *followers: int) -> None:
        """A follower's fetch reaches its leader."""
        for each in followers:
            believed = self.cluster.broker(each)
            doing = f"{each} fetches from offset {believed.log_end_offset}"
            self._step(doing, lambda cluster, each=each: follower.fetch_messages(cluster, each))  # type: ignore[misc]

    def receive(self, *followers: int) -> None:
        """The answer to a follower's fetch arrives."""
        for each in followers:
            self._step(
                f"the answer reaches {each}",
                lambda cluster, each=each: follower.process_partition_data(cluster, each),  # type: ignore[misc]
            )

    def catch_up(self, *followers: int) -> None:
        """Fetches and answers until a follower has all that its leader has, and the leader knows."""
        for each in followers:
            for _ in range(8):
                if self.cluster.broker(each).leader in {None, each}:
                    break
                self.fetch(each)
                if self.cluster.broker(each).answer is None:
                    break
                self.receive(each)

    def ask(self, broker: int) -> None:
        """A new follower asks where to cut its log, where its protocol has that question."""
        if self.cluster.broker(broker).truncating:
            doing = f"{broker} asks {self.cluster.broker(broker).leader} where to cut"
            self._step(doing, lambda cluster: follower.end_offset_for_leader_epoch(cluster, broker))

    def learn(self, *brokers: int) -> None:
        """Brokers hear the controller's newest decision, the elected one first; who knows it already does not take a row."""
        decided = self.cluster.controller
        for each in sorted(brokers, key=lambda broker: broker != decided.leader):
            believed = self.cluster.broker(each)
            if (believed.leader_epoch, believed.partition_epoch) != (
                decided.leader_epoch,
                decided.partition_epoch,
            ):
                known = believed.leader_epoch == decided.leader_epoch and decided.leader != each
                if not known or believed.leader is None:
                    self._step(
                        f"{each} hears of the decision",
                        lambda cluster, each=each: life.learn(cluster, each),  # type: ignore[misc]
                    )

    def wait(self, ms: int) -> None:
        """Time passes."""
        self._step(f"{ms:,} ms pass", lambda cluster: life.pass_time(cluster, ms))

    def checkpoint(self, *brokers: int) -> None:
        """Brokers write their high watermarks to disk."""
        for each in brokers:
            self._step(
                f"{each} writes its checkpoint",
                lambda cluster, each=each: life.checkpoint(cluster, each),  # type: ignore[misc]
            )

    def flush(self, broker: int) -> None:
        """The operating system writes a log's pages to disk."""
        self._step(
            f"the pages of {broker} reach its disk", lambda cluster: life.flush(cluster, broker)
        )

    def kill(self, broker: int) -> None:
        """A broker process dies; its machine lives."""
        self._step(f"{broker} is killed", lambda cluster: life.kill(cluster, broker))

    def lose_power(self, broker: int) -> None:
        """A machine dies with what it had not flushed."""
        self._step(f"{broker} loses power", lambda cluster: life.lose_power(cluster, broker))

    def shut_down(self, broker: int) -> None:
        """A controlled shutdown."""
        self._step(
            f"{broker} shuts down", lambda cluster: life.shut_down(cluster, broker), decides=True
        )

    def start(self, broker: int) -> None:
        """A broker starts again and registers."""
        self._step(f"{broker} starts", lambda cluster: life.start(cluster, broker), decides=True)

    def fence(self, *brokers: int) -> None:
        """The controller notices that brokers are gone."""
        doing = f"the controller misses {' and '.join(map(str, brokers))}"
        self._step(doing, lambda cluster: controller.fence(cluster, *brokers), decides=True)

    def register(self, broker: int) -> None:
        """A broker that never stopped reaches the controller again."""
        self._step(
            f"{broker} reaches the controller",
            lambda cluster: controller.register(cluster, broker),
            decides=True,
        )

    def shrink(self, broker: int) -> None:
        """A leader looks for members of the in-sync set that lag."""
        self._step(
            f"{broker} looks who lags", lambda cluster: in_sync.maybe_shrink_isr(cluster, broker)
        )

    def grant(self, broker: int) -> None:
        """The controller answers a leader's wish for another in-sync set, if it has one."""
        if self.cluster.broker(broker).pending_in_sync_replicas is not None:
            self._step(
                f"the controller answers {broker}",
                lambda cluster: in_sync.alter_partition(cluster, broker),
            )

    def elect_preferred(self) -> None:
        """The controller moves the lead to the preferred leader if it may."""
        self._step("preferred election", controller.elect_preferred_leader, decides=True)

    def elect_unclean(self) -> None:
        """An operator asks for an unclean election."""
        self._step(
            "an operator asks for an unclean election",
            controller.elect_unclean_leader,
            decides=True,
        )

    def _step(
        self, done: str, change: Callable[[Cluster], Cluster], *, decides: bool = False
    ) -> None:
        before = self.cluster
        after = change(replace(before, notes=()))
        if decides and after.controller != before.controller:
            after = after.noting(*_decision(before, after))
        self.cluster = replace(after, notes=())
        self.rows.append(Row(done, after.notes, self.cluster))


def _decision(before: Cluster, after: Cluster) -> tuple[str, ...]:
    """The controller's decision in words, if it made one."""
    old, new = before.controller, after.controller
    if (old.leader, old.leader_epoch) == (new.leader, new.leader_epoch):
        return ()
    if new.leader is None:
        return (f"decision: nobody leads in epoch {new.leader_epoch}",)
    leader = f"{new.leader} leads on" if new.leader == old.leader else f"{new.leader} shall lead"
    return (f"decision: {leader} in epoch {new.leader_epoch}",)
