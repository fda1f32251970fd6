"""What it costs to keep a broker down until its log is copied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.export.make import alert, open_alert, view
from tidemark.assess.while_down import cost_of_saving, while_down
from tidemark.core.records import ReplicaView, View


def placed(partition: int, in_sync: list[int], error: str | None = "refused", **more: Any) -> View:
    """With replicas on brokers 1 and 2; broker 1 answers with the error."""
    replicas = [ReplicaView(broker=1, error=error), ReplicaView(broker=2, log_end_offset=9)]
    values = {"assigned": [1, 2], "leader": 2, "effective_min_in_sync_replicas": 1}
    return view(
        partition=partition, in_sync_replicas=in_sync, replicas=replicas, **{**values, **more}
    )


NO_LEADER: dict[str, Any] = {"leader": None, "leaderless": True}
COPY = (
    "While broker 1 is down, 3 partitions lack its replica: 1 at min ISR, 1 under min ISR, "
    "1 offline. It has the only copy of orders-2 that can lead: copy in minutes, and start it "
    "even if the copy fails. Not to do so is a decision of the owner of the records."
)


@pytest.mark.parametrize(
    ("views", "said"),
    [
        (
            [
                placed(0, [2]),
                placed(1, [2], effective_min_in_sync_replicas=2),
                placed(2, [1], **NO_LEADER),
            ],
            COPY,
        ),
        # Another replica can lead, and the minimum was not read.
        (
            [placed(2, [1, 2], effective_min_in_sync_replicas=None, **NO_LEADER)],
            "While broker 1 is down, 1 partition lacks its replica: 1 offline.",
        ),
        (
            [placed(0, [2]), placed(1, [2], missed_passes=2)],
            "While broker 1 is down, at least 1 partition lacks its replica: 1 at min ISR.",
        ),
        # One has a leader since, by an alert.
        (
            [placed(0, [2]), placed(7, [1], **NO_LEADER)],
            "While broker 1 is down, at least 1 partition lacks its replica: 1 at min ISR.",
        ),
        # It answers, or nothing is known of it.
        ([placed(0, [2]), placed(1, [2], error=None)], None),
        ([placed(0, [2], missed_passes=2)], None),
        ([], None),
    ],
)
def test_the_price_is_said_where_it_is_known(views: list[View], said: str | None) -> None:
    assert while_down(1, views, {"east/orders-7": views[0].at + 1 if views else 0.0}) == said


def test_an_alert_that_asks_for_a_broker_names_the_loss_on_its_disk() -> None:
    lost = placed(0, [2])
    evidence = {"proven": [5, 9], "leader_before": 1, "leader": 2}
    lost.alerts = [open_alert(alert("KafkaCommittedDataLoss", topic="orders", partition="0"))]
    lost.alerts[0].evidence = evidence
    offline = alert("KafkaOffline", broker="1", evidence={"last_leader": 1})
    text = "which broker 1 has or may have: copy its log before it restarts"
    assert text in (cost_of_saving(offline, lambda _: [lost]) or "")
    assert cost_of_saving(alert("KafkaOffline", broker="2"), lambda _: [lost]) is None
