"""How a record is committed, and which replicas can lead. No committed record is lost here."""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "two-replica-write",
        "When is a record committed? The first fetch copies it to the follower. The second fetch "
        "shows the leader that it arrived. A later response shows the follower that it is "
        "committed.",
        ("kip-966", "truncate-to-hw"),
        2,
        """
        fetch 2
        write 1
        receive 2
        draw 2 has the record, but 1 does not know it yet: nothing is committed
        fetch 2
        draw after the second fetch 1 knows that m0 is committed, and 2 does not know it yet
        wait 500
        receive 2
        """,
    ),
    Scenario(
        "three-replica-write",
        "Which replicas does the leader wait for? Only for those in sync, so for the slowest of "
        "them.",
        ("kip-966",),
        3,
        """
        fetch 2 3
        write 1
        receive_and_fetch 2
        draw 1 knows that 2 has the record; 3 lacks it and holds the high watermark back
        receive_and_fetch 3
        write 1
        receive 2 3
        draw the high watermark for m0 arrived with m1
        fetch 2 3
        wait 500
        receive 2 3
        """,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "uneven-followers",
        "Two followers fetch from different offsets, in any order. Can the high watermark rise to "
        "the higher one and fall to the lower one? No: it is the minimum, and it only rises.",
        ("kip-966", "truncate-to-hw"),
        3,
        """
        write 1 5
        fetch 2 3
        receive 2 3
        write 1 2
        fetch 2
        receive 2
        write 1 2
        fetch 2
        draw 2 has seven records, and 1 knows it; 1 does not know yet that 3 has five
        fetch 3
        draw the slower follower sets the high watermark: 5, not 7
        receive_and_fetch 3
        receive_and_fetch 2
        """,
    ),
    Scenario(
        "acks-0-1-all",
        "What does acks guarantee? acks=0: nothing. acks=1: one copy. acks=all: the record is "
        "below the high watermark.",
        ("kip-966", "kip-101"),
        2,
        """
        write 1 acks=0
        write 1 acks=1
        write 1 acks=all
        draw three records, one copy of each; the producers of m0 and m1 are done
        fetch 2
        receive_and_fetch 2
        write 1 acks=1
        write 1 acks=all
        kill 1
        fence 1
        learn 2
        draw 1 died before 2 processed the response with m3 and fetched m4
        """,
    ),
    Scenario(
        "follower-lag-shrinks-isr",
        "When does a slow follower stop delaying commits? After replica.lag.time.max.ms, "
        "regardless of how many records it lacks.",
        ("kip-966", "kip-320"),
        3,
        """
        write 1
        catch_up 2 3
        wait 4000 2
        write 1
        write 1
        write 1
        receive_and_fetch 2
        receive_and_fetch 2
        wait 5000 2
        shrink 1
        draw 3 is three records behind and still in sync: time counts, records do not
        wait 22000 2
        shrink 1
        grant 1
        draw without 3 the high watermark advances
        receive 3
        catch_up 3
        grant 1
        """,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "lag-max-messages",
        "Why did 0.9 remove replica.lag.max.messages? A burst that is larger drives every follower "
        "out of the ISR, however fast they fetch, and commits on one replica alone.",
        ("truncate-to-hw", "kip-101"),
        3,
        """
        write 1
        catch_up 2 3
        write 1 5
        shrink 1
        draw five records at once are more than four: both followers leave, and neither is slow
        receive_and_fetch 2 3
        draw one round later both have the burst and are in sync again
        """,
        lag_max_messages=4,
    ),
    Scenario(
        "rejoin-isr",
        "When may a follower join the ISR again? Once it has reached the high watermark, and the "
        "start of the leader's epoch. Until 2.0.0 the high watermark was enough, and that of a "
        "new leader trails.",
        ("kip-966", "kip-279"),
        4,
        """
        write 1
        catch_up 2 3 4
        kill 3
        fence 3
        learn 1
        wait 31000 2 4
        write 1 2
        receive_and_fetch 2 4
        start 3
        learn 1 3
        ask 3
        fetch 3
        draw 3 has reached the start of epoch 0, and not the high watermark of 1
        kill 1
        fence 1
        learn 2 3 4
        ask 3 4
        fetch 3
        grant 2
        draw 3 has reached the high watermark of 2, and not the start of its epoch
        receive_and_fetch 3
        grant 2
        """,
    ),
    Scenario(
        "min-isr-gate",
        "What does min.insync.replicas stop? Writes with acks=all and, since 3.7, the high "
        "watermark itself.",
        ("kip-966", "kip-320"),
        3,
        """
        write 1
        catch_up 2 3
        write 1
        kill 2 3
        fence 2 3
        learn 1
        draw only 1 is in sync, min ISR is 2, and m1 was appended before
        write 1 acks=all
        wait 11000
        write 1 acks=1
        draw m2 was sent with acks=1 while 1 is alone in the ISR
        start 2
        learn 1 2
        ask 2
        catch_up 2
        grant 1
        wait 500
        receive 2
        """,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "preferred-leader",
        "Which replica leads after a restart? The first assigned replica becomes leader again, "
        "but not before it is in sync.",
        ("kip-966", "kip-320"),
        3,
        """
        write 1
        catch_up 2 3
        shut_down 1
        learn 2 3
        ask 3
        write 2
        catch_up 3
        draw 2 leads: it is the next assigned replica that is in sync
        start 1
        elect_preferred
        learn 1
        ask 1
        catch_up 1
        grant 2
        elect_preferred
        learn 1 2 3
        ask 2 3
        catch_up 2 3
        """,
        min_in_sync_replicas=2,
    ),
)
