"""Which replicas had lost records when they answered last: judged by the epochs of their logs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tidemark.assess.records_held import Held, Holder
from tidemark.core.leader_epochs import NO_EPOCH
from tidemark.core.partition import PartitionState, ReplicaState, copy_to_change
from tidemark.detect.measures import answered
from tidemark.evolve.truncation_proof import CutVerdict, judge_cut

Range = tuple[int, int]


def holders_of(
    state: PartitionState,
    lost: Range,
    epochs: tuple[int | None, int | None],
    known: Sequence[Holder] = (),
) -> list[Holder]:
    """One for each replica that may have had them; `epochs` of the loss, before and after.

    A `known` one whose replica is not assigned any more keeps its log on its disk.
    """
    before = NO_EPOCH if epochs[0] is None else epochs[0]
    of_loss = copy_to_change(state)
    of_loss.committed = [entry for entry in state.committed if entry.epoch <= before]
    sampled = state.by_broker
    found = [_holder(of_loss, each, lost, before, epochs[1]) for each in state.replicas]
    gone = [replace(h, answers=False, leads=False) for h in known if h.broker not in sampled]
    return [*found, *gone]


def _holder(
    state: PartitionState, replica: ReplicaState, lost: Range, before: int, after: int | None
) -> Holder:
    state_of, held_to = _judge(state, replica, lost, before, after)
    is_leader = replica.broker == state.leader
    return Holder(
        broker=replica.broker,
        state=state_of,
        held_to=held_to,
        sampled_at=replica.sampled_at,
        answers=answered(state, replica),
        leads=is_leader and answered(state, replica),
        size_bytes=replica.size_bytes,
    )


def _judge(
    state: PartitionState, replica: ReplicaState, lost: Range, before: int, after: int | None
) -> tuple[Held, int | None]:
    broker, epoch, end = replica.broker, replica.leader_epoch, replica.log_end_offset
    knows_later = after is not None and epoch is not None and epoch >= after
    if end is None or any(reset.broker == broker for reset in state.resets):
        return "unknown", None
    if end <= lost[0]:
        # A log that ends below never had them, unless it knows the later leader by now.
        return ("cut" if knows_later or after is None else "unknown"), None
    lineage = state.lineage if broker == state.leader else replica.lineage
    # Epochs that were read before a truncation are not those of the log any more. A replica
    # truncates only under a later leader than that of its last record.
    is_exact = lineage is not None and lineage[-1:] != [] and lineage[-1][0] == epoch
    if not is_exact and (epoch is None or epoch > before):
        return "unknown", None
    # What it had committed itself was in its log, also where a reading between two passes saw it.
    led = [e.high_watermark for e in state.committed if (e.epoch, e.leader) == (epoch, broker)]
    if led and max(led) > lost[0] and not knows_later:
        return "held", min(max(led), lost[1])
    judged = judge_cut(state, state, replica, lost[0])
    if judged.verdict is CutVerdict.PROVEN and judged.below is not None:
        return "held", min(judged.below, lost[1])
    return ("cut" if knows_later and is_exact else "unknown"), None
