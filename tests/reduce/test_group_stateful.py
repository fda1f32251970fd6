"""A pipeline may split, repeat, delay and rerun the records of a group; the result is the same.

Beside it, the same records are folded once and in order. Rows and state must be equal.
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

from tests.reduce.histories import DETECTION, passes
from tests.scenarios.scenario import Scenario
from tidemark.core.codec import encode_batch
from tidemark.reduce.group import Fold, fold_group
from tidemark.reduce.group_state import GroupState, decode_group, encode_group
from tidemark.reduce.rows import RawRecord, Row


class Pipeline(RuleBasedStateMachine):
    """`_sent`: the records on the topic, with repeats. `_blob`: the state between two calls."""

    @initialize(minimum=st.integers(1, 2))
    def begin(self, minimum: int) -> None:
        self._scenario = Scenario(thresholds=DETECTION.thresholds)
        self._scenario.run(f"partition orders-0 replicas=1,2,3 min_isr={minimum}")
        self._epoch = 0
        self._taken = 0
        self._sent: list[RawRecord] = []
        self._once = Fold(GroupState(), DETECTION, 0, 1)
        self._blob: bytes | None = None
        self._rows: list[Row] = []
        self._waiting = 0

    @rule(words=passes)
    def one_pass(self, words: str) -> None:
        self._epoch += "leader=" in words
        self._run(f"pass {words}")

    @rule(count=st.integers(2, 6))
    def quiet_passes(self, count: int) -> None:
        self._run(f"pass {count} add=7")

    @precondition(lambda self: self._sent)
    @rule(back=st.integers(1, 4))
    def repeat(self, back: int) -> None:
        """A retry of the producer, at once or a little later."""
        self._send(self._sent[-min(back, len(self._sent))].value)

    @rule()
    def unreadable(self) -> None:
        """A dead letter; dead letters are not compared."""
        self._send(b'{"v": 1, "events": [')

    @precondition(lambda self: self._waiting)
    @rule(data=st.data())
    def call(self, data: st.DataObject) -> None:
        """The stream takes some of the waiting records. A rerun gives the same bytes."""
        records = self._pending()[: data.draw(st.integers(1, self._waiting))]
        blob, rows = fold_group(self._blob, records, DETECTION, 0, 1)
        assert fold_group(self._blob, list(reversed(records)), DETECTION, 0, 1) == (blob, rows)
        self._blob, self._waiting = blob, self._waiting - len(records)
        self._rows += rows

    @invariant()
    def state_decodes_to_what_was_encoded(self) -> None:
        if getattr(self, "_blob", None) is not None:
            assert encode_group(decode_group(self._blob)) == self._blob

    def teardown(self) -> None:
        """Folds the rest and compares."""
        if not hasattr(self, "_scenario"):
            return
        blob, rows = fold_group(self._blob, self._pending(), DETECTION, 0, 1)
        folded = [row for row in (*self._rows, *rows) if row.destination != "dead_letters"]
        assert folded == self._once.rows
        assert blob == encode_group(self._once.close())

    def _pending(self) -> list[RawRecord]:
        return self._sent[len(self._sent) - self._waiting :]

    def _run(self, command: str) -> None:
        self._scenario.run(f"{command} epoch={self._epoch}")
        for batch in self._scenario.batches[self._taken :]:
            value = encode_batch(batch)
            self._once.record(RawRecord(0, self._taken, 0.0, value))
            self._taken += 1
            self._send(value)

    def _send(self, value: bytes | None) -> None:
        self._sent.append(RawRecord(0, len(self._sent), 0.0, value))
        self._waiting += 1


def test_any_way_through_the_pipeline_gives_the_same_result() -> None:
    run_state_machine_as_test(Pipeline, settings=settings(max_examples=100, stateful_step_count=30))
