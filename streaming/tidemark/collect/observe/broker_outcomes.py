"""What the record of a pass says of each broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidemark.collect.metadata.inventory import Inventory
from tidemark.collect.watched.request_plan import BrokerPlan
from tidemark.core.events import MAX_LEFT_NAMES, TIMED_OUT, UNLISTED, BrokerAnswer


def broker_answers(
    inventory: Inventory,
    plans: Mapping[int, BrokerPlan],
    outcomes: Mapping[int, str],
    identity_checked: Mapping[int, bool | None],
    started: float,
    registered: Collection[int],
) -> list[BrokerAnswer]:
    """Of all known brokers. `started`: of the pass (monotonic). Takes what left in-sync sets.

    `registered`: all brokers that the controller knows, fenced ones too; empty where that is not
    known. Brokers with replicas that none of them lists are named too, unless they are none of it.
    """
    left, led_shrinks = inventory.left_replicas.take(), inventory.left_replicas.led_shrinks.totals
    found = []
    for broker, address in inventory.brokers.items():
        plan, names = plans.get(broker), left.get(broker, [])
        times = None if plan is None else plan.answers.last_times
        shrinks, of_absent = led_shrinks.get(broker, (0, 0))
        found.append(
            BrokerAnswer(
                broker=broker,
                outcome=outcomes.get(broker, TIMED_OUT),
                answered_ms=round((times.answered_at - started) * 1000, 3) if times else None,
                **address._asdict(),
                **inventory.counts(broker)._asdict(),
                left=len(names),
                left_most=names[:MAX_LEFT_NAMES],
                led_shrinks=shrinks,
                led_shrinks_of_absent=of_absent,
                identity_checked=identity_checked.get(broker),
            )
        )
    found += [
        BrokerAnswer(broker=b, outcome=UNLISTED, **inventory.counts(b)._asdict())
        for b in inventory.unlisted()
        if not registered or b in registered
    ]
    return found
