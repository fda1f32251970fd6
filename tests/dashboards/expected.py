"""For every query of every panel: a scene, and the series and values that it must show there.

The last value of the scene counts; for events, whose increase is temporary, the largest (`most`).
A rate over few scrapes is extrapolated: `about` allows for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.dashboards.story import FROZEN, HEALTHY, IDLE_SECONDS, OFFLINE, UNCLEAN, UNDER_MIN

VIEWS = "tidemark.partition-views"
# The values of the variables, unless an expectation has others.
CHOSEN = {"kafka_cluster": "demo", "topic": "orders", "partition": "0", "broker": "1|2|3"}


@dataclass(frozen=True)
class Expected:
    """`labels` of the series, and the bounds of its value; without bounds it must be absent.

    `choose` overrides variables.
    """

    scene: str
    low: float | None
    high: float | None
    labels: dict[str, str]
    most: bool = False
    choose: dict[str, str] = field(default_factory=dict)


def exactly(
    scene: str, value: float, choose: dict[str, str] | None = None, **labels: str
) -> Expected:
    return Expected(scene, value, value, labels, choose=choose or {})


def between(scene: str, low: float, high: float, **labels: str) -> Expected:
    return Expected(scene, low, high, labels)


def about(scene: str, value: float, **labels: str) -> Expected:
    return Expected(scene, value * 0.9, value * 1.7, labels, most=True)


ON = {"partition": "1"}
ALL = {"kafka_cluster": "demo|idle"}

# dashboard -> panel -> the expectations of its queries A, B, …
PANELS: dict[str, dict[int, list[Expected]]] = {
    "tidemark-fleet": {
        1: [exactly(UNDER_MIN, 1)],
        2: [exactly(HEALTHY, 1, choose=ALL)],
        3: [exactly(FROZEN, 1)],
        4: [exactly(HEALTHY, 1)],
        5: [
            exactly(OFFLINE, 3, kafka_cluster="demo"),
            exactly(UNDER_MIN, 1, kafka_cluster="demo"),
            exactly(FROZEN, 1, kafka_cluster="demo"),
            exactly(OFFLINE, 1, kafka_cluster="demo"),
            exactly(UNDER_MIN, 1, kafka_cluster="demo"),
            exactly(UNDER_MIN, 2, kafka_cluster="demo"),
            exactly(OFFLINE, 1, kafka_cluster="demo"),
            exactly(FROZEN, 4, kafka_cluster="demo"),
            between(HEALTHY, 0, 5, kafka_cluster="demo"),
        ],
        6: [exactly(FROZEN, 4, kafka_cluster="demo")],
        7: [Expected(HEALTHY, None, None, {"kafka_cluster": "demo"})],
    },
    "tidemark-overview": {
        1: [exactly(UNCLEAN, 7, kafka_cluster="demo", kind="proven")],
        2: [exactly(UNDER_MIN, 1, kafka_cluster="demo")],
        3: [exactly(OFFLINE, 1, kafka_cluster="demo")],
        4: [exactly(UNDER_MIN, 1, kafka_cluster="demo")],
        5: [exactly(UNDER_MIN, 2, kafka_cluster="demo")],
        6: [exactly(OFFLINE, 1, kafka_cluster="demo")],
        7: [exactly(FROZEN, 4, broker="2")],
        8: [exactly(FROZEN, 40, kafka_cluster="demo")],
        9: [about(UNDER_MIN, 1, broker="2")],
        10: [
            about(UNCLEAN, 1, kind="confirmed"),
            about(UNCLEAN, 1, kind="proven"),
            about(UNCLEAN, 1, kafka_cluster="demo"),
        ],
        12: [between(HEALTHY, 0, 5, kafka_cluster="demo")],
        13: [exactly(FROZEN, 0, broker="2")],
        15: [exactly(FROZEN, 4, topic="orders")],
        16: [exactly(FROZEN, 1, alertname="KafkaFollowerLag", severity="warning")],
    },
    "tidemark-topic": {
        1: [exactly(HEALTHY, 3)],
        2: [exactly(OFFLINE, 1)],
        3: [exactly(UNDER_MIN, 1)],
        4: [exactly(UNDER_MIN, 1)],
        5: [exactly(FROZEN, 4)],
        6: [exactly(FROZEN, 1)],
        7: [exactly(FROZEN, 4)],
        8: [exactly(FROZEN, 40)],
        9: [exactly(FROZEN, 40)],
        10: [exactly(FROZEN, 4.2)],
        11: [
            exactly(FROZEN, 4, partition="0"),
            exactly(FROZEN, 40, partition="0"),
            exactly(UNDER_MIN, 1, partition="0"),
            exactly(HEALTHY, 3, partition="2"),
            exactly(UNCLEAN, 2, partition="0"),
            exactly(UNCLEAN, 6, partition="0"),
        ],
        12: [exactly(FROZEN, 1, alertname="KafkaFollowerLag")],
        13: [exactly(UNDER_MIN, 1, partition="0")],
        14: [exactly(HEALTHY, 0)],
        15: [exactly(HEALTHY, 0)],
    },
    "tidemark-partition": {
        1: [exactly(UNCLEAN, 2)],
        2: [exactly(UNCLEAN, 6)],
        3: [exactly(UNDER_MIN, 1)],
        4: [exactly(UNDER_MIN, 1)],
        5: [exactly(OFFLINE, 1, choose=ON)],
        6: [exactly(OFFLINE, 4, choose={"topic": "payments"})],
        7: [exactly(FROZEN, 1000, broker="2"), exactly(FROZEN, 1000, broker="1")],
        8: [exactly(FROZEN, 40, broker="2")],
        9: [exactly(FROZEN, 4, broker="2")],
        10: [exactly(FROZEN, 40)],
        11: [exactly(FROZEN, 4.2)],
        12: [exactly(UNCLEAN, 6), exactly(UNCLEAN, 2)],
        13: [exactly(UNDER_MIN, 0, broker="2")],
        14: [exactly(UNCLEAN, 5, broker="3")],
        15: [exactly(FROZEN, 0, broker="2")],
        16: [exactly(UNDER_MIN, 1, alertname="KafkaUnderMinIsr")],
        17: [exactly(UNDER_MIN, 8), exactly(UNDER_MIN, 12, broker="1")],
        18: [exactly(UNDER_MIN, 40, broker="2")],
        19: [exactly(UNDER_MIN, 9, broker="2")],
    },
    "tidemark-brokers": {
        1: [
            exactly(UNDER_MIN, 1, broker="1"),
            exactly(FROZEN, 1, broker="3"),
            exactly(UNDER_MIN, 1, broker="2"),
            exactly(OFFLINE, 1, broker="1"),
            exactly(HEALTHY, 4, broker="1"),
            exactly(UNCLEAN, 2, broker="2"),
            exactly(FROZEN, 0, broker="2"),
            exactly(FROZEN, 4, broker="2"),
            exactly(UNDER_MIN, 2, broker="3"),
        ],
        2: [exactly(OFFLINE, 0, kafka_cluster="demo")],
        3: [exactly(FROZEN, 1, kafka_cluster="demo")],
        4: [about(UNDER_MIN, 1, broker="3")],
        5: [about(UNDER_MIN, 2, broker="1")],
        6: [about(OFFLINE, 1, broker="3")],
        7: [about(UNDER_MIN, 2, cause="does not answer")],
        8: [exactly(FROZEN, 4, broker="2")],
        9: [exactly(UNDER_MIN, 2, broker="3")],
        10: [exactly(UNCLEAN, 1, broker="1")],
        11: [exactly(FROZEN, 0, broker="2")],
        12: [exactly(FROZEN, 8, broker="2")],
        13: [
            exactly(HEALTHY, 100, kafka_cluster="demo"),
            exactly(HEALTHY, 3, kafka_cluster="demo"),
        ],
        14: [exactly(HEALTHY, 0.25, log_directory="/a")],
        15: [exactly(OFFLINE, 0, log_directory="/b")],
        16: [exactly(FROZEN, 40, broker="1", purgatory="produce")],
        17: [about(FROZEN, 5, broker="1", operation="produce")],
        18: [exactly(FROZEN, 17, broker="1")],
        19: [exactly(FROZEN, 2, broker="1"), exactly(FROZEN, 1, broker="1")],
        20: [exactly(UNDER_MIN, 2, broker="1", source="jmx")],
        21: [exactly(UNDER_MIN, 40, broker="1", kind="committed")],
        22: [exactly(UNDER_MIN, 9, broker="1")],
        23: [exactly(UNDER_MIN, 6, broker="2")],
    },
    "tidemark-pipeline": {
        1: [
            Expected(
                HEALTHY,
                IDLE_SECONDS,
                IDLE_SECONDS + 5,
                {"kafka_cluster": "idle"},
                choose=ALL,
            )
        ],
        2: [exactly(HEALTHY, 0)],
        3: [about(UNCLEAN, 2)],
        4: [about(FROZEN, 1, topic=VIEWS)],
        5: [between(OFFLINE, 0.9, 10, receiver="hook")],
        6: [between(UNDER_MIN, 1, 5, receiver="hook")],
        7: [between(HEALTHY, 0.01, 0.026, kafka_cluster="demo")],
        8: [exactly(HEALTHY, 4, result="observed")],
        9: [between(UNCLEAN, 10, 40), between(UNCLEAN, 10, 40)],
        10: [exactly(HEALTHY, 0.8), between(HEALTHY, 0.25, 0.5)],
        11: [exactly(HEALTHY, 3)],
        12: [exactly(HEALTHY, 5_000_000)],
        13: [between(HEALTHY, 0.0001, 1)],
        # 12 replicas with 10 series each; nothing is left out.
        14: [exactly(HEALTHY, 120, tier="replica"), Expected(OFFLINE, None, None, {})],
        15: [between(HEALTHY, 5, 30, topic=VIEWS)],
        16: [Expected(FROZEN, 0.9, 5, {"outcome": "ok"}, most=True)],
        17: [between(UNDER_MIN, 1, 5, receiver="hook")],
        18: [exactly(HEALTHY, 1)],
    },
}

# dashboard -> annotation -> where it must be present; none is in the healthy scene
ANNOTATIONS: dict[str, dict[str, Expected]] = {
    "tidemark-fleet": {
        "Records lost": Expected(UNCLEAN, 0.5, 20, {"kafka_cluster": "demo"}, most=True)
    },
    "tidemark-overview": {
        "Loss or unclean election": Expected(
            UNCLEAN, 0.5, 20, {"kafka_cluster": "demo"}, most=True
        ),
        "Critical alert": exactly(UNDER_MIN, 1, alertname="KafkaUnderMinIsr"),
    },
    "tidemark-topic": {"Alert about the topic": exactly(FROZEN, 1, alertname="KafkaFollowerLag")},
    "tidemark-partition": {
        "Alert about the topic": exactly(FROZEN, 1, alertname="KafkaFollowerLag"),
        "Election": Expected(UNCLEAN, 1, 1, {}, most=True),
    },
    "tidemark-brokers": {"Broker silent": exactly(FROZEN, 0, broker="2")},
    "tidemark-pipeline": {
        "No fresh pass": Expected(
            HEALTHY,
            # The time of a scrape is that of its request.
            IDLE_SECONDS - 1,
            IDLE_SECONDS + 5,
            {"kafka_cluster": "idle"},
            choose={"kafka_cluster": "demo|idle"},
        ),
        "Alerts not delivered": Expected(OFFLINE, 0.5, 20, {"outcome": "rejected"}, most=True),
    },
}

# variable -> its values, with the other variables as chosen above
VALUES = {
    "kafka_cluster": ["demo", "idle"],
    "topic": ["orders", "payments"],
    "partition": ["0", "1", "2"],
    "broker": ["1", "2", "3"],
}
