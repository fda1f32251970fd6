"""The smallest script that still fails in the same way, and its events."""

from __future__ import annotations

from tests.histories.findings import Finding
from tests.histories.history import Script
from tests.histories.judge import Result, judge


def finding_of(result: Result, kind: str) -> Finding | None:
    return next((found for found in result.findings if found.kind == kind), None)


def shrink(plan: Script, kind: str) -> tuple[Script, Result]:
    """Cuts the end off, then removes faults one at a time while the failure remains."""
    result = judge(plan)
    found = finding_of(result, kind)
    assert found is not None, (plan.seed, kind)
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(plan, found):
            attempt = judge(candidate)
            again = finding_of(attempt, kind)
            if again is not None:
                plan, result, found, changed = candidate, attempt, again, True
                break
    return plan, result


def _smaller(plan: Script, found: Finding) -> list[Script]:
    faults = [fault for fault in plan.faults if fault.number <= found.number]
    smaller = []
    if 0 < found.number < plan.passes:
        smaller.append(plan.without(faults, found.number))
    smaller += [
        plan.without(faults[:index] + faults[index + 1 :], plan.passes)
        for index in range(len(faults))
    ]
    return smaller
