"""How a record becomes committed, and who may still lead: nothing fails for good here."""

from __future__ import annotations

from tidemark.model.scenarios.play import Play
from tidemark.model.scenarios.scenario import Scenario


def two_replica_write(play: Play) -> None:
    play.fetch(2)
    play.write(1)
    play.receive(2)
    play.picture("2 has the record, 1 does not know it yet: nothing is committed")
    play.fetch(2)
    play.picture("the second fetch told 1: committed there, and 2 does not know it yet")
    play.wait(500)
    play.receive(2)


def three_replica_write(play: Play) -> None:
    play.fetch(2, 3)
    play.write(1)
    play.receive(2)
    play.fetch(2)
    play.picture(
        "2 has told that it has the record, 3 has not: the slowest in-sync replica holds the high watermark"
    )
    play.receive(3)
    play.fetch(3)
    play.write(1)
    play.receive(2, 3)
    play.picture("the high watermark of m0 came with m1")
    play.fetch(2, 3)
    play.wait(500)
    play.receive(2, 3)


def acks_0_1_all(play: Play) -> None:
    play.write(1, acks="0")
    play.write(1, acks="1")
    play.write(1, acks="all")
    play.picture("three records, one copy of each; two producers have been served")
    play.fetch(2)
    play.receive(2)
    play.fetch(2)
    play.write(1, acks="1")
    play.write(1, acks="all")
    play.kill(1)
    play.fence(1)
    play.learn(2)
    play.picture("1 died before 2 had read the answer with m3, and before 2 had fetched m4")


def follower_lag_shrinks_isr(play: Play) -> None:
    play.write(1)
    play.catch_up(2, 3)
    play.wait(4_000)
    play.receive(2)
    play.fetch(2)
    play.write(1)
    play.write(1)
    play.write(1)
    play.receive(2)
    play.fetch(2)
    play.wait(5_000)
    play.shrink(1)
    play.picture("3 is three records behind and in sync: records are not counted, time is")
    play.wait(22_000)
    play.receive(2)
    play.fetch(2)
    play.shrink(1)
    play.grant(1)
    play.picture("without 3 the high watermark goes on")
    play.receive(3)
    play.catch_up(3)
    play.grant(1)


def min_isr_gate(play: Play) -> None:
    play.write(1)
    play.catch_up(2, 3)
    play.write(1)
    play.kill(2)
    play.kill(3)
    play.fence(2, 3)
    play.learn(1)
    play.picture("1 is alone, min ISR is 2, and m1 was accepted before")
    play.write(1, acks="all")
    play.wait(11_000)
    play.write(1, acks="1")
    play.picture("m2 came with acks=1; 2 and 3 have been gone for too long to be waited for")
    play.start(2)
    play.learn(1, 2)
    play.ask(2)
    play.catch_up(2)
    play.grant(1)
    play.wait(500)
    play.receive(2)


def preferred_leader(play: Play) -> None:
    play.write(1)
    play.catch_up(2, 3)
    play.shut_down(1)
    play.learn(2, 3)
    play.ask(3)
    play.write(2)
    play.catch_up(3)
    play.picture("2 leads, being the next assigned replica that is in sync")
    play.start(1)
    play.elect_preferred()
    play.learn(1)
    play.ask(1)
    play.catch_up(1)
    play.grant(2)
    play.elect_preferred()
    play.learn(1, 2, 3)
    play.ask(2)
    play.ask(3)
    play.catch_up(2, 3)


SCENARIOS = (
    Scenario(
        "two-replica-write",
        "When is a record committed? One fetch brings it to the follower, the next one tells the leader, an answer after that tells the follower.",
        ("kip-966", "truncate-to-hw"),
        2,
        two_replica_write,
    ),
    Scenario(
        "three-replica-write",
        "Whom does the leader wait for? For the slowest of the replicas that are in sync, and for nobody else.",
        ("kip-966",),
        3,
        three_replica_write,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "acks-0-1-all",
        "What is a producer promised? acks=0 nothing, acks=1 one copy, acks=all the high watermark.",
        ("kip-966", "kip-101"),
        2,
        acks_0_1_all,
    ),
    Scenario(
        "follower-lag-shrinks-isr",
        "When does a slow follower stop holding everybody up? After replica.lag.time.max.ms, however few or many records it lacks.",
        ("kip-966", "kip-320"),
        3,
        follower_lag_shrinks_isr,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "min-isr-gate",
        "What does min.insync.replicas stop? Writes with acks=all; and, since 3.7, the high watermark itself.",
        ("kip-966", "kip-320"),
        3,
        min_isr_gate,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "preferred-leader",
        "Who leads after a restart? The first assigned replica gets the lead back, but not before it is in sync.",
        ("kip-966", "kip-320"),
        3,
        preferred_leader,
        min_in_sync_replicas=2,
    ),
)
