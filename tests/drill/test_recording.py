from __future__ import annotations

import json

from tidemark_lab.drills.recording import served_at


def sample(at: float, epoch: int | None, committed: int | None) -> str:
    return json.dumps({"at": at, "leader_epoch": epoch, "committed": committed})


def test_a_leader_serves_from_its_first_answer_in_an_epoch() -> None:
    lines = [
        sample(1.0, 4, 10),
        sample(2.0, 4, 11),
        # It is named, and does not answer as the leader yet.
        sample(3.0, 5, None),
        sample(5.0, 5, 8),
        # Another thread wrote its line later.
        sample(4.0, 5, 8),
        sample(6.0, None, None),
    ]
    assert served_at(lines) == [1.0, 4.0]
