"""Open alerts by cause."""

from __future__ import annotations

from tests.export.make import alert
from tidemark.assess.causes import by_cause


def test_a_broker_s_alert_stands_before_those_of_its_partitions() -> None:
    loss = alert("KafkaCommittedDataLoss", severity="critical", broker=None, topic="t")
    lag = [alert(severity="info", broker="3", topic="t", partition=n) for n in ("0", "1")]
    down = alert("KafkaBrokerDown", broker="3")
    other = alert(broker="2", topic="t", partition="5")
    groups = by_cause([loss, other, down, *lag])
    assert [(group.head, len(group.others)) for group in groups] == [
        (loss, 0),
        (other, 0),
        (down, 0),
        (lag[0], 1),
    ]
