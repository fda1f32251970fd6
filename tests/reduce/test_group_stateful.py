"""A machine that sends a world's records through the reducer as a real pipeline may: split, repeated, late, run again.

Beside it the same records are folded once, in order, in one go. Whatever the machine did, rows and state must be equal.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.reduce.test_group_property import DETECTION, words
from tests.scenarios.world import World
from tidemark.core.codec import encode_batch
from tidemark.reduce.group import Fold, fold_group
from tidemark.reduce.group_state import GroupState, decode_group, encode_group
from tidemark.reduce.rows import RawRecord, Row


class Pipeline(RuleBasedStateMachine):
    """`_sent`: what reached the topic, repeats and all. `_blob`: the state between two batches of the stream."""

    @initialize(minimum=st.integers(1, 2))
    def begin(self, minimum: int) -> None:
        self._world = World(thresholds=DETECTION.thresholds)
        self._world.run(f"partition orders-0 replicas=1,2,3 min_isr={minimum}")
        self._epoch = 0
        self._taken = 0
        self._sent: list[RawRecord] = []
        self._once = Fold(GroupState(), DETECTION, 0, 1)
        self._blob: bytes | None = None
        self._rows: list[Row] = []
        self._waiting = 0

    @rule(word=words)
    def a_pass(self, word: str) -> None:
        self._epoch += "leader=" in word
        self._world.run(f"pass {word} epoch={self._epoch}")
        self._send_new()

    @rule(count=st.integers(2, 6))
    def quiet_passes(self, count: int) -> None:
        self._world.run(f"pass {count} add=7 epoch={self._epoch}")
        self._send_new()

    @precondition(lambda self: self._sent)
    @rule(back=st.integers(1, 4))
    def a_record_comes_again(self, back: int) -> None:
        """A retry of the producer: at once or a little later, never before the first copy."""
        self._send(self._sent[-min(back, len(self._sent))].value)

    @rule()
    def garbage(self) -> None:
        """What cannot be read becomes a dead letter, beside everything else; it is not part of the comparison."""
        self._send(b'{"v": 1, "events": [')

    @precondition(lambda self: self._waiting)
    @rule(data=st.data())
    def a_batch(self, data: st.DataObject) -> None:
        """The stream takes some of what waits; a batch that is run again gives the same bytes."""
        count = data.draw(st.integers(1, self._waiting))
        start = len(self._sent) - self._waiting
        records = self._sent[start : start + count]
        blob, rows = fold_group(self._blob, records, DETECTION, 0, 1)
        assert fold_group(self._blob, list(reversed(records)), DETECTION, 0, 1) == (blob, rows)
        self._blob, self._waiting = blob, self._waiting - count
        self._rows += [row for row in rows if row.destination != "dead_letters"]

    @invariant()
    def state_decodes_to_what_was_encoded(self) -> None:
        if getattr(self, "_blob", None) is not None:
            assert encode_group(decode_group(self._blob)) == self._blob

    def teardown(self) -> None:
        """Everything that waits is folded; then both ways must have come to the same."""
        if not hasattr(self, "_world"):
            return
        blob, rows = fold_group(
            self._blob, self._sent[len(self._sent) - self._waiting :], DETECTION, 0, 1
        )
        rows = [*self._rows, *(row for row in rows if row.destination != "dead_letters")]
        assert rows == self._once.rows
        assert blob == encode_group(self._once.close())

    def _send_new(self) -> None:
        for batch in self._world.batches[self._taken :]:
            value = encode_batch(batch)
            self._once.record(RawRecord(0, self._taken, 0.0, value))
            self._taken += 1
            self._send(value)

    def _send(self, value: bytes | None) -> None:
        self._sent.append(RawRecord(0, len(self._sent), 0.0, value))
        self._waiting += 1


def test_any_way_through_the_pipeline_ends_the_same() -> None:
    run_state_machine_as_test(Pipeline, settings=settings(max_examples=100, stateful_step_count=30))
