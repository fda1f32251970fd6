"""How committed records are lost, and what each protocol did about it."""

from __future__ import annotations

from tidemark.model.scenarios.play import Play
from tidemark.model.scenarios.scenario import Scenario

EVERY = ("truncate-to-hw", "kip-101", "kip-279", "kip-320", "kip-966")
EPOCHS = ("kip-101", "truncate-to-hw", "kip-279", "kip-320", "kip-966")


def _two_records(play: Play) -> None:
    """m0 is known to be committed on both brokers; m1 is committed, and 2 does not know it yet."""
    play.fetch(2)
    play.write(1)
    play.receive(2)
    play.fetch(2)
    play.write(1)
    play.receive(2)
    play.fetch(2)
    play.checkpoint(1, 2)


def _returns(play: Play, broker: int, leader: int) -> None:
    """A broker comes back, both learn who leads, and whoever follows catches up."""
    play.start(broker)
    play.learn(leader, broker)
    play.ask(broker)
    play.ask(leader)
    play.catch_up(broker, leader)
    play.grant(broker)
    play.grant(leader)


def hw_truncation_loss(play: Play) -> None:
    _two_records(play)
    play.picture("m1 is committed and acknowledged; the high watermark of 2 trails by a round")
    play.kill(2)
    play.start(2)
    play.learn(1, 2)
    play.ask(2)
    play.picture("2 has restarted, 1 has not been asked for records yet")
    play.kill(1)
    play.fence(1)
    play.learn(2)
    _returns(play, 1, 2)


def hw_truncation_divergence(play: Play) -> None:
    play.write(1)
    play.catch_up(2)
    play.flush(2)
    play.write(1)
    play.receive(2)
    play.fetch(2)
    play.flush(1)
    play.checkpoint(1, 2)
    play.picture("both records are committed; m1 is in the memory of 2 and not on its disk")
    play.lose_power(1)
    play.lose_power(2)
    play.fence(1, 2)
    play.start(2)
    play.learn(2)
    play.write(2)
    play.picture("2 is back first")
    _returns(play, 1, 2)


def epoch_reply_never_comes(play: Play) -> None:
    _two_records(play)
    play.kill(2)
    play.start(2)
    play.learn(1, 2)
    play.kill(1)
    play.ask(2)
    play.picture("2 has restarted and nobody told it where to cut its log")
    play.fence(1)
    play.learn(2)
    play.write(2)
    _returns(play, 1, 2)


def last_replica_standing(play: Play) -> None:
    play.write(1)
    play.catch_up(2, 3)
    play.write(1)
    play.receive(2, 3)
    play.fetch(2, 3)
    play.shut_down(3)
    play.learn(1)
    play.shut_down(2)
    play.learn(1)
    play.picture(
        "2 and 3 have stopped in good order with all records on their disks; 1 stands alone"
    )
    play.lose_power(1)
    play.fence(1)
    play.start(1)
    play.learn(1)
    _returns(play, 2, 1)
    play.picture("1 and 2 are back")
    play.start(3)
    play.learn(3)
    play.ask(3)
    play.catch_up(3)
    play.grant(1)
    play.grant(2)


def unclean_election(play: Play) -> None:
    play.write(1)
    play.catch_up(2)
    play.kill(2)
    play.fence(2)
    play.learn(1)
    play.wait(31_000)
    play.write(1)
    play.picture("m1 is committed on 1 alone, for 1 alone is in sync")
    play.kill(1)
    play.fence(1)
    play.start(2)
    play.elect_unclean()
    play.learn(2)
    play.write(2)
    _returns(play, 1, 2)


def zombie_leader(play: Play) -> None:
    play.write(1)
    play.catch_up(2, 3)
    play.fence(1)
    play.wait(2_000)
    play.learn(2, 3)
    play.ask(3)
    play.write(1, acks="1")
    play.write(1, acks="all")
    play.write(2, acks="all")
    play.catch_up(3)
    play.picture("two brokers believe to lead; 1 has not heard from the controller")
    play.wait(29_000)
    play.shrink(1)
    play.grant(1)
    play.register(1)
    play.learn(1, 2)
    play.ask(1)
    play.catch_up(1)
    play.grant(2)


SCENARIOS = (
    Scenario(
        "hw-truncation-loss",
        "How did Kafka lose committed records? A follower restarts, cuts its log to its own trailing high watermark, and is made leader.",
        EVERY,
        2,
        hw_truncation_loss,
    ),
    Scenario(
        "hw-truncation-divergence",
        "How did two logs come to differ for good? Both machines lose power, the one with the shorter log is back first and leads.",
        EVERY,
        2,
        hw_truncation_divergence,
    ),
    Scenario(
        "epoch-reply-never-comes",
        "What if the leader dies before it can say where to cut? Then nothing is cut, and the follower leads with all it has.",
        EPOCHS,
        2,
        epoch_reply_never_comes,
    ),
    Scenario(
        "last-replica-standing",
        "Is the last in-sync replica the best one to lead? Not when its disk lost records; before KIP-966 it was made leader all the same.",
        ("kip-320", "kip-966"),
        3,
        last_replica_standing,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "unclean-election",
        "What does an unclean election cost? Whatever the old leader had committed without the new one.",
        ("kip-966", "kip-320"),
        2,
        unclean_election,
    ),
    Scenario(
        "zombie-leader",
        "What can a leader do that does not know it was replaced? Answer acks=1, and commit nothing.",
        ("kip-966", "kip-320", "kip-279"),
        3,
        zombie_leader,
        min_in_sync_replicas=2,
    ),
)
