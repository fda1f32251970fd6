"""What consumers can read, and what completes the fetches that wait."""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "consumer-visibility",
        "When can a consumer read a record? Once it is below the high watermark. The fetch by "
        "which the follower confirms the record completes the producer's request and the "
        "consumer's fetch.",
        ("kip-966", "truncate-to-hw"),
        2,
        """
        subscribe 1
        fetch 2
        poll 1
        write 1
        draw the append completed the follower's fetch, and not the consumer's
        receive_and_fetch 2
        poll 1
        wait 500
        """,
    ),
    Scenario(
        "last-stable-offset",
        "Where does a consumer with read_committed stop? At the first record of an open "
        "transaction, also if later records are committed. A transaction that no one ends stops "
        "it forever.",
        ("kip-966", "kip-101"),
        2,
        """
        subscribe 1
        subscribe 2 read_committed
        write_in 1 t1
        write 1
        catch_up 2
        poll 1 2
        draw m0 and m1 are committed; C2 reads neither, because the transaction of m0 is open
        end 1 t1 commit
        receive_and_fetch 2
        write_in 1 t2
        write 1
        receive_and_fetch 2
        receive_and_fetch 2
        poll 1 2
        wait 500 2
        draw the producer of t2 is gone, and no marker ends t2: the last stable offset stays
        end 1 t2 abort
        receive_and_fetch 2
        poll 2
        """,
    ),
    Scenario(
        "replica-read",
        "What does a consumer see that reads from a follower? The records below the follower's "
        "own high watermark, which trails. If the follower's log is too short, the consumer "
        "returns to the leader.",
        ("kip-966", "kip-320"),
        2,
        """
        subscribe 1 rack=2
        write 1
        catch_up 2
        poll 1
        poll 1
        draw m0 is committed on 1; 2 does not know that yet, so C1 waits
        write 1
        receive 2
        fetch 2
        wait 500
        receive 2
        poll 1
        lose_power 2
        fence 2
        start 2
        learn 1 2
        poll 1
        poll 1
        draw C1 reads from the leader again, from the same position
        """,
    ),
    Scenario(
        "request-of-two-partitions",
        "What if a request concerns several partitions? A fetch completes with the first record "
        "of any, and its entries in the other watcher lists stay until they are purged. A produce "
        "request waits for all.",
        ("kip-966",),
        2,
        """
        fetch 2
        append_elsewhere 1
        draw the fetch of 2 is complete, and is still watched here
        purge 1
        receive_and_fetch 2
        write 1 elsewhere=yes
        receive_and_fetch 2
        draw m0 is committed, and its producer still waits
        commit_elsewhere 1
        """,
    ),
    Scenario(
        "purgatory-race",
        "What if a record arrives while a fetch is on its way into the purgatory? No one has to "
        "wake it: the broker tries once more, after it has added the fetch to the watcher list.",
        ("kip-966",),
        2,
        """
        read 2
        write 1
        draw the append found no fetch to complete
        watch 1
        receive_and_fetch 2
        """,
    ),
)
