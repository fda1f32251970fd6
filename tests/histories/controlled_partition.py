"""The controller: one partition's leader, epochs and in-sync set.

See PartitionChangeBuilder and ReplicationControlManager. Every change is one committed record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.histories.controller import NO_LEADER, Brokers, Controller, PartitionRecord


class ControlledPartition:
    """`unclean`: the topic allows unclean elections. `elected` is called after each election."""

    def __init__(
        self, controller: Controller, replicas: Brokers, min_in_sync: int, *, unclean: bool
    ) -> None:
        self.controller = controller
        self.min_in_sync = min_in_sync
        self.unclean = unclean
        # cleanup.policy
        self.compacts = False
        self.index = len(controller.partitions)
        controller.partitions.append(self)
        self.records: list[PartitionRecord] = []
        self.elected: Callable[[PartitionRecord], None] = lambda _: None
        first = PartitionRecord(0, replicas[0], 0, 0, replicas, replicas)
        self.records.append(first)
        controller.log.append((self.index, first))

    @property
    def state(self) -> PartitionRecord:
        return self.records[-1]

    def effective_min(self, replicas: Brokers) -> int:
        """Only since Kafka 3.7 do the replicas bound it (KAFKA-15583)."""
        is_bounded = self.controller.mode.kafka >= (3, 7)
        return min(self.min_in_sync, len(replicas)) if is_bounded else self.min_in_sync

    def change(
        self,
        in_sync: Iterable[int],
        *,
        replicas: Brokers | None = None,
        reassignment: tuple[Brokers, Brokers] | None = None,
        election: str = "online",
        lost: Brokers = (),
    ) -> None:
        """PartitionChangeBuilder.build. `lost`: replicas that were shut down uncleanly."""
        old = self.state
        if not old.exists:
            return
        replicas = old.replicas if replicas is None else replicas
        adding, removing = (old.adding, old.removing) if reassignment is None else reassignment
        target = tuple(b for b in in_sync if b in replicas)
        if adding or removing:
            kept = tuple(b for b in target if b not in removing)
            if set(adding) <= set(kept) and kept and reassignment is None:
                replicas = tuple(b for b in replicas if b not in removing)
                adding, removing, target = (), (), kept
        leader, kind = self._elect(old, target, replicas, election, lost)
        if kind in {"unclean", "last known leader"} or kind == "eligible":
            target = (leader,)
        if not target and not self.controller.mode.elr:
            target = old.in_sync
        removed = not set(old.replicas) <= set(replicas)
        shrunk = self.controller.mode.bump_on_shrink and not set(old.in_sync) <= set(target)
        # With ZooKeeper, a leader that shrinks the set keeps its epoch.
        by_controller = election != "alter" or self.controller.mode.quorum
        bump = leader != old.leader or removed or (shrunk and by_controller)
        eligible = self._eligible(old, target, replicas, lost)
        if kind == "unclean":
            eligible = ()
        last_known = self._last_known(old, target, leader)
        new = PartitionRecord(
            old.topic,
            leader,
            old.leader_epoch + bump,
            old.partition_epoch + 1,
            replicas,
            target,
            eligible,
            last_known,
            adding,
            removing,
            kind=kind or old.kind,
            recovering=kind in {"unclean", "last known leader"}
            or (old.recovering and not kind and election != "alter"),
            at=self.controller.now,
        )
        if new[1:11] == (*old[1:3], new.partition_epoch, *old[4:11]):
            return
        self._commit(new)

    def _commit(self, new: PartitionRecord) -> None:
        old = self.state
        self.records.append(new)
        self.controller.log.append((self.index, new))
        if new.exists and (new.topic, new.leader_epoch) != (old.topic, old.leader_epoch):
            self.elected(new)

    def _elect(
        self,
        old: PartitionRecord,
        target: Brokers,
        replicas: Brokers,
        election: str,
        lost: Brokers,
    ) -> tuple[int, str]:
        """The leader, and the kind of its election ("" when it stays)."""

        def is_valid(broker: int) -> bool:
            if not self.controller.is_active(broker) or broker not in replicas:
                return False
            if target or not self.controller.mode.elr:
                return broker in target
            return broker in old.eligible and broker not in lost

        if election == "preferred" and is_valid(replicas[0]):
            return replicas[0], "clean" if replicas[0] != old.leader else ""
        if old.leader != NO_LEADER and is_valid(old.leader):
            return old.leader, ""
        for broker in replicas:
            if is_valid(broker):
                return broker, "clean" if broker in target else "eligible"
        if (
            self.controller.mode.elr
            and self.controller.last_known_leader
            and not target
            and not set(old.eligible) - set(lost)
            and len(old.last_known) == 1
            and old.last_known[0] in replicas
            and self.controller.is_active(old.last_known[0])
        ):
            return old.last_known[0], "last known leader"
        if self.unclean or election == "unclean":
            for broker in replicas:
                if self.controller.is_active(broker):
                    return broker, "unclean"
        return NO_LEADER, ""

    def _eligible(
        self, old: PartitionRecord, target: Brokers, replicas: Brokers, lost: Brokers
    ) -> Brokers:
        if not self.controller.mode.elr or len(target) >= self.effective_min(replicas):
            return ()
        found = {*old.eligible, *old.in_sync} - set(target) - set(lost)
        return tuple(sorted(found & set(replicas)))

    def _last_known(self, old: PartitionRecord, target: Brokers, leader: int) -> Brokers:
        if not self.controller.mode.elr:
            return ()
        if not target and old.in_sync and old.leader != NO_LEADER:
            return (old.leader,)
        return () if leader != NO_LEADER else old.last_known

    # What the controller, brokers and operators ask for.

    def leave(self, broker: int, *, lost: bool = False) -> None:
        """A broker is fenced or stops. `lost`: it was shut down uncleanly (KIP-966)."""
        state = self.state
        members = (*state.in_sync, state.leader, *(state.eligible if lost else ()))
        if broker in members:
            self.change((b for b in state.in_sync if b != broker), lost=(broker,) if lost else ())

    def elect_if_leaderless(self) -> None:
        if self.state.leader == NO_LEADER and self.state.exists:
            self.change(self.state.in_sync)

    def alter(self, broker: int, leader_epoch: int, partition_epoch: int, isr: Brokers) -> bool:
        """AlterPartition. False: refused, and the leader waits for newer metadata."""
        state = self.state
        if (state.leader, state.leader_epoch) != (broker, leader_epoch) or not state.exists:
            return False
        if state.partition_epoch != partition_epoch:
            return False
        if any(not self.controller.is_active(b) for b in isr if b not in state.in_sync):
            return False
        self.change(isr, election="alter")
        return True

    def elect_preferred(self) -> None:
        if self.state.leader != NO_LEADER:
            self.change(self.state.in_sync, election="preferred")

    def elect_uncleanly(self) -> None:
        """kafka-leader-election --election-type unclean: only a partition without a leader."""
        if self.state.leader == NO_LEADER and self.state.exists:
            self.change(self.state.in_sync, election="unclean")

    def reassign(self, target: Brokers) -> None:
        state = self.state
        if state.adding or state.removing or set(target) == set(state.replicas):
            return
        adding = tuple(b for b in target if b not in state.replicas)
        removing = tuple(b for b in state.replicas if b not in target)
        self.change(
            state.in_sync,
            replicas=(*target, *removing),
            reassignment=(adding, removing),
        )
        self.change(self.state.in_sync)

    def restore(self, epochs: int) -> PartitionRecord:
        """The metadata of a backup: epochs are lower by so many, all else is as it is."""
        old = self.state
        restored = old._replace(
            leader_epoch=max(0, old.leader_epoch - epochs),
            partition_epoch=max(0, old.partition_epoch - epochs),
            at=self.controller.now,
        )
        self.records.append(restored)
        self.controller.log.append((self.index, restored))
        return restored

    def delete(self) -> None:
        self._commit(self.state._replace(exists=False, at=self.controller.now))

    def create(self, replicas: Brokers) -> None:
        topic = self.state.topic + 1
        leader = next((b for b in replicas if self.controller.is_active(b)), NO_LEADER)
        members = tuple(b for b in replicas if self.controller.is_active(b))
        self._commit(
            PartitionRecord(
                topic, leader, 0, 0, replicas, members or replicas, at=self.controller.now
            )
        )
