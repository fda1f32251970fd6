"""What a broker's disk keeps: the recovery point and the log start."""

from __future__ import annotations

from typing import Final

from tidemark_lab.model.scenarios.scenario import Scenario

SCENARIOS: Final = (
    Scenario(
        "delete-records",
        "When are deleted records gone? The leader deletes at once, the followers with their next "
        "responses. The request waits for the low watermark: the smallest log start offset of the "
        "live replicas.",
        ("kip-966", "kip-320"),
        3,
        """
        write 1 3
        catch_up 2 3
        wait 500 2 3
        delete_records 1 2
        draw 1 has deleted m0 and m1; 2 and 3 do not know it yet
        wait 500
        receive_and_fetch 2
        receive_and_fetch 3
        draw every replica starts at 2: the request is complete
        kill 2
        start 2
        draw the log start of 2 was not in its checkpoint yet: it falls, and nothing is lost
        learn 1 2
        ask 2
        catch_up 2
        wait 500
        receive_and_fetch 2
        """,
    ),
    Scenario(
        "power-failure",
        "What is left of a log after a power failure? At least everything below the recovery "
        "point. The broker checks its log from there on, keeps what the operating system had "
        "written, and fetches the rest again.",
        ("kip-966", "kip-320"),
        2,
        """
        write 1 2
        catch_up 2
        force 2
        checkpoint_log 2
        checkpoint 2
        write 1
        receive_and_fetch 2
        flush 2
        write 1
        receive_and_fetch 2
        draw 2 knows only of m0 and m1 that they are on its disk; m2 is, m3 is not
        lose_power 2
        fence 2
        learn 1
        start 2
        draw m2 is above the recovery point, and was found
        learn 1 2
        ask 2
        catch_up 2
        grant 1
        """,
    ),
)
