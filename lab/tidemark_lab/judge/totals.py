"""What all drills of a run come to: faults, records, losses by reason, delays. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tidemark.core.text import counted
from tidemark_lab.judge.verdict import Result


class Delays(NamedTuple):
    """Of one alert: seconds from the moment when a client could see its condition to the webhook.

    `from_leader`: from the first answer of the new leader, of an unclean election and a loss.
    `updates`: those that went with an update of a cause that was notified before; they wait for
    others by design, and are in neither list.
    """

    to_webhook: Sequence[float]
    from_leader: Sequence[float]
    updates: int
    allowed: float


def delays(results: Iterable[Result]) -> dict[str, Delays]:
    """By name of the alert."""
    posted: dict[str, list[float]] = defaultdict(list)
    served: dict[str, list[float]] = defaultdict(list)
    updates: Counter[str] = Counter()
    allowed: dict[str, float] = {}
    for result in results:
        for check in result.checks:
            name = check.name.split(" ")[0]
            if check.allowed_seconds is None or check.seconds_to_webhook is None:
                continue
            allowed[name] = max(allowed.get(name, 0.0), check.allowed_seconds)
            if check.in_update:
                updates[name] += 1
                continue
            posted[name].append(check.seconds_to_webhook)
            if check.seconds_from_leader is not None:
                served[name].append(check.seconds_from_leader)
    return {
        name: Delays(posted[name], served[name], updates[name], most)
        for name, most in sorted(allowed.items())
    }


def quantile(values: Sequence[float], percent: float) -> float | None:
    """The smallest value that so many percent do not exceed; None of none."""
    if not values:
        return None
    rank = math.ceil(percent / 100 * len(values))
    return sorted(values)[max(rank, 1) - 1]


def totals(results: Sequence[Result]) -> dict[str, Any]:
    """The sums of a run; `lost_not_proven` counts records by reason."""
    unproven: Counter[str] = Counter()
    for result in results:
        unproven.update(result.unproven)
    return {
        "runs": len(results),
        "faults": sum(len(result.marks) for result in results),
        "acknowledged_records": sum(result.acknowledged for result in results),
        "lost_records": sum(result.lost for result in results),
        "lost_and_proven_records": sum(result.lost for result in results) - unproven.total(),
        "lost_not_proven": dict(unproven.most_common()),
    }


def as_lines(results: Sequence[Result]) -> list[str]:
    """The totals, and how long alerts took to the webhook."""
    found = totals(results)
    first = (
        f"{counted(found['runs'], 'run')}, {counted(found['faults'], 'fault')}, "
        f"{counted(found['acknowledged_records'], 'acknowledged record')}, "
        f"{found['lost_records']:,} lost, {found['lost_and_proven_records']:,} of them proven"
    )
    lines = [first]
    lines += [f"  {count:,} not proven: {why}" for why, count in found["lost_not_proven"].items()]
    for name, each in delays(results).items():
        p50, p99 = quantile(each.to_webhook, 50), quantile(each.to_webhook, 99)
        if p50 is not None and p99 is not None:
            within = "within" if p99 <= each.allowed else "ABOVE"
            lines.append(
                f"{name} to the webhook: p50 {p50:.1f} s, p99 {p99:.1f} s of "
                f"{len(each.to_webhook)}, {within} {each.allowed:g} s"
            )
    return lines
