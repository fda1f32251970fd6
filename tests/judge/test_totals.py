from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.judge.examples import marks
from tidemark_lab.judge.report import as_lines, delays, quantile, totals
from tidemark_lab.judge.verdict import Check, Result


def fired(seconds: float, *, in_update: bool = False, from_leader: float | None = None) -> Check:
    return Check(
        "KafkaOffline", "PASSED", "fired", 9.0, 1.0, 7.0, seconds, from_leader, in_update=in_update
    )


def result(*checks: Check, lost: int = 0, unproven: dict[str, int] | None = None) -> Result:
    return Result(
        *("a", "4.1.2", 1.0, checks, list(marks("kill").values())),
        acknowledged=100,
        lost=lost,
        unproven=unproven or {},
    )


def test_losses_that_are_not_proven_are_counted_by_reason_over_all_runs() -> None:
    runs = [
        result(lost=10, unproven={"never sampled": 3}),
        result(lost=5, unproven={"never sampled": 1, "no epochs": 4}),
    ]
    assert totals(runs) == {
        "runs": 2,
        "faults": 2,
        "acknowledged_records": 200,
        "lost_records": 15,
        "lost_and_proven_records": 7,
        "lost_not_proven": {"never sampled": 4, "no epochs": 4},
    }


def test_updates_of_a_notified_cause_are_counted_apart() -> None:
    found = delays([result(fired(2.0, from_leader=1.5), fired(31.0, in_update=True))])
    assert found["KafkaOffline"] == ([2.0], [1.5], 1, 7.0)


def test_a_delay_above_the_allowed_time_is_named() -> None:
    late, early = (as_lines([result(fired(seconds))])[-1] for seconds in (7.5, 2.0))
    assert late == "KafkaOffline to the webhook: p50 7.5 s, p99 7.5 s of 1, ABOVE 7 s"
    assert early == "KafkaOffline to the webhook: p50 2.0 s, p99 2.0 s of 1, within 7 s"


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0, 100))
def test_a_quantile_is_a_value_that_so_many_do_not_exceed(
    values: Sequence[float], percent: float
) -> None:
    found = quantile(values, percent)
    assert found is not None and found in values
    assert sum(value <= found for value in values) >= percent / 100 * len(values) - 1e-6


def test_nothing_has_no_quantile() -> None:
    assert quantile([], 99) is None
