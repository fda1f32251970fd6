"""How committed records are lost, and what each protocol does about it."""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.scenarios.scenario import Scenario

ALL_PROTOCOLS: Final = ("truncate-to-hw", "kip-101", "kip-279", "kip-320", "kip-966")
# Under kip-101 a follower asks where to truncate for the first time.
FROM_KIP_101: Final = ("kip-101", "truncate-to-hw", "kip-279", "kip-320", "kip-966")

# m0 is committed, and both brokers know it. m1 is committed, and 2 does not know it yet.
_TWO_RECORDS: Final = """
    fetch 2
    write 1
    receive_and_fetch 2
    write 1
    receive_and_fetch 2
    checkpoint 1 2
"""
# 1 restarts, both brokers learn the leader, and the follower catches up.
_RESTART_1: Final = """
    start 1
    learn 2 1
    ask 1 2
    catch_up 1 2
    grant 1 2
"""

_LOSS: Final = """
    draw m1 is committed and acknowledged; the high watermark of 2 trails by one round
    kill 2
    start 2
    learn 1 2
    ask 2
    draw 2 has restarted and has decided what to truncate
    kill 1
    fence 1
    learn 2
"""

SCENARIOS: Final = (
    Scenario(
        "hw-truncation-loss",
        "How did Kafka lose committed records? A follower restarts and stays in sync, truncates "
        "its log to its own high watermark, which trails, and is elected leader before it has "
        "fetched again what it removed.",
        ALL_PROTOCOLS,
        2,
        f"""
        {_TWO_RECORDS}
        {_LOSS}
        {_RESTART_1}
        """,
        # The default until 0.10. Without it broker 1 exits where it truncates here.
        unclean_leader_election=("truncate-to-hw",),
    ),
    Scenario(
        "hw-truncation-loss-acks-1",
        "Does the same loss need acks=all? No. With acks=1, the default until 2.8, both records "
        "are acknowledged earlier, are in both logs before the restart, and one is gone after it.",
        ALL_PROTOCOLS,
        2,
        f"""
        {_TWO_RECORDS.replace("write 1", "write 1 acks=1")}
        {_LOSS}
        {_RESTART_1}
        """,
        unclean_leader_election=("truncate-to-hw",),
    ),
    Scenario(
        "hw-truncation-divergence",
        "How did two logs diverge permanently? Both machines lose power, and 2 loses a record that "
        "was not on its disk yet. The controller sees 1 fail first, so 2 is elected, and writes "
        "another record at the same offset.",
        ALL_PROTOCOLS,
        2,
        f"""
        write 1
        catch_up 2
        flush 2
        write 1
        receive_and_fetch 2
        flush 1
        checkpoint 1 2
        draw both records are committed; 2 has m1 in memory but not on disk
        lose_power 1 2
        fence 1 2
        start 2
        learn 2
        write 2
        draw 2 restarts first
        {_RESTART_1}
        """,
    ),
    Scenario(
        "epoch-reply-never-comes",
        "What happens if the leader dies before it answers where to truncate? Since KIP-101 the "
        "follower truncates nothing. If it is still in sync, it leads with its whole log.",
        FROM_KIP_101,
        2,
        f"""
        {_TWO_RECORDS}
        kill 2
        start 2
        learn 1 2
        kill 1
        ask 2
        draw 2 has restarted, and 1 has died before it answered
        fence 1
        learn 2
        write 2
        {_RESTART_1}
        """,
    ),
    Scenario(
        "epoch-without-records",
        "Why does a leader note its epoch before it has a record of it (KAFKA-7415)? Else it does "
        "not know where a later epoch of a follower ends. The follower truncates to its high "
        "watermark again, is in sync, and is elected.",
        ("kip-279-first-record", "kip-279", "kip-101", "kip-320", "kip-966"),
        3,
        """
        write 1
        catch_up 2 3
        write 1
        receive_and_fetch 2 3
        draw m1 is committed; the high watermarks of 2 and 3 trail by one round
        fence 1
        learn 2 3
        ask 3
        register 1
        learn 1
        ask 1
        fetch 1
        grant 2
        write 2
        draw 2 leads in epoch 1, and m2 is in its log alone
        elect_preferred
        learn 1
        learn 2
        ask 2
        draw 1 leads in epoch 2, and has no record of it; 2 has asked where epoch 1 ends
        kill 1
        fence 1
        learn 2
        learn 3
        ask 3
        start 1
        learn 1
        ask 1
        catch_up 1 3
        grant 2
        """,
    ),
    Scenario(
        "last-replica-standing",
        "Is the last in-sync replica always the best leader? Not if its disk lost records. Before "
        "KIP-966 it was elected anyway.",
        ("kip-320", "kip-966"),
        3,
        """
        write 1
        catch_up 2 3
        write 1
        receive_and_fetch 2 3
        shut_down 3
        learn 1
        shut_down 2
        learn 1
        draw 2 and 3 shut down cleanly with all records on disk; 1 is the last one in sync
        lose_power 1
        fence 1
        start 1
        learn 1
        start 2
        learn 1 2
        ask 2 1
        catch_up 2 1
        grant 2 1
        draw 1 and 2 have restarted
        start 3
        learn 3
        ask 3
        catch_up 3
        grant 1 2
        """,
        min_in_sync_replicas=2,
    ),
    Scenario(
        "unclean-election",
        "What does an unclean election lose? Every record that the old leader committed and the "
        "new leader does not have.",
        ("kip-966", "kip-320"),
        2,
        f"""
        write 1
        catch_up 2
        kill 2
        fence 2
        learn 1
        wait 31000
        write 1
        draw only 1 is in sync, so m1 is committed with one copy
        kill 1
        fence 1
        start 2
        elect_unclean
        learn 2
        write 2
        {_RESTART_1}
        """,
    ),
    Scenario(
        "fetch-without-leader-epoch",
        "Why does a fetch carry the leader epoch? Without it a leader counts a follower that still "
        "follows its earlier leadership. That follower may follow another broker next, and "
        "truncate what was committed.",
        ("kip-320-first-try", "kip-320"),
        3,
        """
        write 1
        catch_up 2 3
        fence 1
        learn 2
        write 2
        register 1
        learn 1
        ask 1
        catch_up 1
        grant 2
        elect_preferred
        learn 1
        draw 3 has learned neither election, 2 has not learned the second one
        write 1
        wait 11000 3
        shrink 1
        grant 1
        fetch 3
        receive_and_fetch 3
        grant 1
        draw 1 leads in epoch 2, and 3 fetches as a follower of epoch 0
        learn_late 3 1
        ask 3
        fetch 3
        receive 3
        kill 1
        fence 1
        learn 3
        start 1
        learn 1 2 3
        ask 1 2 3
        catch_up 1 2 3
        """,
    ),
    Scenario(
        "zombie-leader",
        "What can a leader do before it learns that it was replaced? It can acknowledge acks=1. It "
        "cannot commit: its successor is in its ISR and no longer fetches from it.",
        ("kip-966", "kip-320", "kip-279"),
        3,
        """
        write 1
        catch_up 2 3
        fence 1
        wait 500
        learn 2 3
        ask 3
        write 1 acks=1
        write 1 acks=all
        write 2 acks=all
        catch_up 3
        draw two brokers act as leader: 1 has not learned the decision
        wait 29700 3
        shrink 1
        register 1
        shrink 1
        grant 1
        learn 1 2
        ask 1
        catch_up 1
        grant 2
        """,
        min_in_sync_replicas=2,
    ),
)
