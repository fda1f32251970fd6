"""Two sets of alerts compared: the same alert, a new one, one that is gone."""

from __future__ import annotations

import pytest

from tidemark.core.records import Alert, Severity
from tidemark.verbs.replay.episodes import Episodes, compare, summary


def episodes(
    *spans: tuple[float, float | None],
    severity: Severity = "warning",
    name: str = "KafkaFollowerLag",
) -> Episodes:
    labels = {
        "kafka_cluster": "main",
        "alertname": name,
        "severity": severity,
        "topic": "t",
        "partition": "0",
    }
    found = Episodes()
    for start, end in spans:
        for at, state in ((start, "firing"), (start, "update"), (end, "resolved")):
            if at is not None:
                alert = Alert(
                    id=f"{at}.{state}", fingerprint=f"{name}{severity}", state=state, labels=labels,  # type: ignore[arg-type]
                    annotations={"description": "d"}, starts_at=start, at=at,
                )  # fmt: skip
                found.add(alert)
    return found


def changed(old: Episodes, new: Episodes) -> list[tuple[str, str, float]]:
    return [
        (change.change, change.episode.kind, change.episode.alert.at)
        for change in compare(old, new)
    ]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        # An alert that fires earlier or later is the same.
        (episodes((10.0, 50.0)), episodes((14.0, 48.0)), []),
        (episodes((10.0, None)), episodes((14.0, None)), []),
        (
            episodes((10.0, 20.0)),
            episodes((21.0, 30.0)),
            [("gone", "ticket", 10.0), ("come", "ticket", 21.0)],
        ),
        # Where flapping ends, the other episodes are gone.
        (
            episodes((10.0, 20.0), (25.0, 30.0), (35.0, 40.0)),
            episodes((10.0, 40.0)),
            [("gone", "ticket", 25.0), ("gone", "ticket", 35.0)],
        ),
        (
            episodes((10.0, 40.0)),
            episodes((10.0, 20.0), (25.0, 40.0)),
            [("come", "ticket", 25.0)],
        ),
    ],
)
def test_episodes_are_compared_by_their_times(
    old: Episodes, new: Episodes, changes: list[tuple[str, str, float]]
) -> None:
    assert changed(old, new) == changes


def test_info_alerts_are_ignored_and_pages_differ_from_tickets() -> None:
    note, page = (
        episodes((1.0, 2.0), severity="info"),
        episodes((1.0, 2.0), severity="critical", name="KafkaOffline"),
    )
    assert changed(note, Episodes()) == []
    changes = compare(page, episodes((3.0, None)))
    assert [(c.change, c.episode.kind) for c in changes] == [("gone", "page"), ("come", "ticket")]
    assert summary(page, episodes((3.0, None)), changes) == (
        "pages: 1 before, 0 with the new thresholds (+0 -1); "
        "tickets: 0 before, 1 with the new thresholds (+1 -0)"
    )
    assert (
        changes[1].line()
        == "+ 1970-01-01 00:00:03.000  ticket  KafkaFollowerLag  main/t-0  open at the end: d"
    )
