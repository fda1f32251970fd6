"""Alerts that the stream forgot, streams without passes, and the dead man's switch."""

from __future__ import annotations

import pytest

from tests.export.make import NOW, alert, open_alert, view
from tidemark.core.records import Alert
from tidemark_exporters.notify.derived_alerts import FIRST_VIEW_SECONDS, OpenAlerts, StalledStreams


@pytest.fixture
def alerts() -> OpenAlerts:
    return OpenAlerts()


def flow(alerts: OpenAlerts, start: float, end: float) -> list[Alert]:
    """A pass arrives every ten seconds. Returns the alerts that are lost meanwhile."""
    lost = []
    for step in range(int((end - start) // 10) + 1):
        lost += alerts.ended_without_record({"east": start + 10 * step}, start + 10 * step, 30)
    return lost


def test_an_alert_that_no_view_contains_for_five_minutes_is_over(alerts: OpenAlerts) -> None:
    fired = alert(at=NOW)
    alerts.take(fired)
    alerts.take_view(view(at=NOW + 60, alerts=[open_alert(fired)]), NOW)
    assert flow(alerts, NOW, NOW + 360) == []
    (over,) = flow(alerts, NOW + 370, NOW + 600)
    assert (over.state, over.reason, over.ends_at, over.labels) == (
        "resolved",
        "state_lost",
        NOW + 370,
        fired.labels,
    )


def test_while_passes_do_not_flow_no_alert_is_over(alerts: OpenAlerts) -> None:
    alerts.take(alert(at=NOW))
    for newest in ({}, {"east": NOW + 361}, {"west": NOW + 1000}):
        assert alerts.ended_without_record(newest, NOW + 1000, 30) == []


@pytest.mark.parametrize("called_during_the_gap", [True, False])
def test_after_a_gap_the_stream_has_five_minutes_to_assert(
    alerts: OpenAlerts, called_during_the_gap: bool
) -> None:
    alerts.take(alert(at=NOW))
    assert flow(alerts, NOW, NOW + 100) == []
    if called_during_the_gap:
        assert alerts.ended_without_record({"east": NOW + 100}, NOW + 3000, 30) == []
    assert flow(alerts, NOW + 3600, NOW + 3900) == []
    assert len(flow(alerts, NOW + 3910, NOW + 3910)) == 1


def test_an_alert_that_resolved_is_not_lost(alerts: OpenAlerts) -> None:
    alerts.take(alert(at=NOW))
    alerts.take(alert(state="resolved", at=NOW + 5))
    assert flow(alerts, NOW, NOW + 1000) == []


def test_views_assert_only_alerts_with_a_record(alerts: OpenAlerts) -> None:
    alerts.take_view(view(alerts=[open_alert(alert())]), NOW)
    assert flow(alerts, NOW, NOW + 1000) == []


def stalled(*clusters: str) -> StalledStreams:
    return StalledStreams(clusters, 30.0, NOW)


def test_a_cluster_gets_time_for_its_first_view() -> None:
    streams = stalled("east")
    assert [each.state for each in streams.alerts({}, NOW + FIRST_VIEW_SECONDS)] == ["resolved"]
    (fired,) = streams.alerts({}, NOW + FIRST_VIEW_SECONDS + 1)
    assert (fired.state, fired.labels["kafka_cluster"]) == ("firing", "east")
    assert "no view of it has arrived" in fired.annotations["description"]


def test_a_cluster_that_is_not_configured_is_watched_once_seen() -> None:
    assert [each.state for each in stalled().alerts({"west": NOW}, NOW + 31)] == ["firing"]


def test_the_same_transition_has_the_same_id_after_a_restart() -> None:
    ids = {stalled("east").alerts({"east": NOW}, NOW + late)[0].id for late in (31, 35)}
    assert len(ids) == 1
