"""Which broker makes a follower late: the leader, the follower itself, or the link between them.

The links of the whole cluster are compared (`Pass.links`): a slow leader makes all its followers
late and nobody else, a slow follower is late under all its leaders, and alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

# (leader, follower) -> (partitions in which the follower had to fetch, those in which it is late).
Links = Mapping[tuple[int, int], tuple[int, int]]
# Broker -> whether it is late on the link that it shares with the other broker of a pair.
Lates = Mapping[int, bool]


class Blame(NamedTuple):
    """The cause, the broker that it is (None: the link), and the evidence, a sentence."""

    cause: Literal["leader", "follower", "link"]
    broker: int | None
    evidence: str


def blame(
    links: Links, leader: int | None, follower: int, beside: Lates | None = None
) -> Blame | None:
    """Why a follower is late; None where the evidence separates nothing.

    `beside`: whether the other followers of its partition are late. It counts where the links do
    not say so: for one partition of a link that is not late, or while no collector counts links.
    """
    if leader is None:
        return None
    beside, elsewhere = beside or {}, {}
    if _is_late(links.get((leader, follower), (0, 0))):
        others = {b: _is_late(n) for (a, b), n in links.items() if a == leader and b != follower}
        beside = {**beside, **others}
        elsewhere = {a: _is_late(n) for (a, b), n in links.items() if b == follower and a != leader}
    return _compare(leader, follower, beside, elsewhere)


def blamed_of(links: Links, follower: int) -> int | None:
    """The one broker that makes a follower late, whoever leads; None: none, or several."""
    found = [blame(links, leader, broker) for leader, broker in links if broker == follower]
    brokers = {each.broker for each in found if each is not None}
    return brokers.pop() if len(brokers) == 1 else None


def _is_late(counts: tuple[int, int]) -> bool:
    """Most partitions of a link are late. A few of many are no matter of the link."""
    moving, late = counts
    return 2 * late > moving


def _compare(leader: int, follower: int, beside: Lates, elsewhere: Lates) -> Blame | None:
    """`beside`: the other followers of the leader; `elsewhere`: the follower's other leaders."""
    late_elsewhere = [broker for broker, late in elsewhere.items() if late]
    if not all(beside.values()):
        in_time = (broker for broker, late in beside.items() if not late)
        served = f"Leader {leader} serves broker {_names(in_time)} in time"
        if elsewhere and not late_elsewhere:
            what = f"{served}, and broker {follower} keeps up with {_names(elsewhere)}"
            return Blame("link", None, f"{what}: check the network between {leader} and {follower}")
        return Blame("follower", follower, f"{served}: check broker {follower}")
    all_elsewhere = bool(elsewhere) and len(late_elsewhere) == len(elsewhere)
    if all_elsewhere and not beside:
        late = f"Broker {follower} is late under {_names([leader, *elsewhere])} alike"
        return Blame("follower", follower, f"{late}: check broker {follower}")
    if all_elsewhere or not (beside or elsewhere) or (late_elsewhere and not beside):
        return None
    late = f"All followers of leader {leader} are late ({_names([follower, *beside])})"
    kept = " and keep up with other leaders" if elsewhere else ""
    return Blame("leader", leader, f"{late}{kept}: check broker {leader}")


def _names(brokers: Iterable[int]) -> str:
    return " and ".join(map(str, sorted(brokers)))
