"""JMX on the pages and in the API, beside what Tidemark sampled."""

from __future__ import annotations

import pytest

from tests.export.make import NOW, alert, broker_view, cluster_view
from tests.pages.make import healthy_view, jmx_view, site, table
from tests.pages.markup import items, page
from tidemark.core.events import JmxFigures
from tidemark.core.records import Alert, ShrinkCounts, View


def unclean(at: float, incident: str) -> Alert:
    return alert(
        "KafkaUncleanElection",
        "resolved",
        at=at + 9,
        starts_at=at,
        reason="acked",
        incident=incident,
        topic="orders",
        partition="0",
    )


def views(*more: View) -> list[View]:
    return [healthy_view("orders", 0), broker_view(1, outcome="ok", jmx=jmx_view()), *more]


def test_the_table_of_brokers_shows_both_counts_and_since_when_they_differ() -> None:
    _, jmx, _ = page(site(), "/brokers").all("table")
    (row,) = jmx.one("tbody").all("tr")
    assert row.one("th").text == "3"
    texts = [cell.text for cell in row.all("td")]
    assert texts[:6] == ["6 s ago", "0", "12 1,234 keys", "17", "unknown", "unknown"]
    assert texts[6] == (
        "3 / 6 2 of brokers that did not answer; since 2027-01-15 06:00:00 UTC "
        "i differ since 2027-01-15 07:55:00 UTC"
    )
    assert "By JMX" in page(site(), "/broker", cluster="east", broker=3).one("main").text
    assert "By JMX" not in page(site(), "/broker", cluster="east", broker=1).one("main").text


def test_counts_that_agree_or_are_not_compared() -> None:
    agree = ShrinkCounts(since=NOW, by_jmx=1, sampled=1, of_absent=0)
    alone = jmx_view(isr_shrinks=None, figures=JmxFigures(isr_shrinks=41))
    made = [
        broker_view(1, jmx=jmx_view(isr_shrinks=agree)),
        broker_view(2, jmx=alone),
    ]
    _, jmx = page(site(table([healthy_view("orders", 0), *made])), "/brokers").all("table")
    texts = [row.all("td")[6].text for row in jmx.one("tbody").all("tr")]
    assert texts == [
        "1 / 1 since 2027-01-15 08:00:00 UTC",
        "41 since its start; not compared",
    ]


@pytest.mark.parametrize(("reported", "verdict"), [(2, ""), (1, "they differ")])
def test_unclean_elections_by_a_controller_and_as_alerts(reported: int, verdict: str) -> None:
    controller = jmx_view(
        figures=JmxFigures(is_active_controller=True),
        produce_purgatory=None,
        isr_shrinks=None,
        unclean_leader_elections=2,
        unclean_leader_elections_since=NOW - 3600,
    )
    past = [unclean(NOW - 60, str(number)) for number in range(reported)]
    past.append(unclean(NOW - 4000, "before"))
    cluster = cluster_view(broker_outcomes={"1": "ok"}, jmx_of_nodes={"100": controller})
    shown = page(site(table(views(cluster)), past=past), "/brokers").one("main").text
    assert "100 active controller" in shown
    assert "a controller, 2 unclean elections since 2027-01-15 07:00:00 UTC" in shown
    assert f"2 by the controller's JMX, {reported} reported by Tidemark." in shown
    assert ("they differ" in shown) is bool(verdict)


def test_the_api_has_the_figures_and_leaves_unknown_ones_out() -> None:
    found = items(site(table(views())), "brokers", cluster="east", broker=1)
    (one,) = found["items"]
    assert one["jmx"]["figures"] == {
        "isr_shrinks": 41,
        "fetcher_max_lag_records": 17,
        "fetch_purgatory_watches": 1234,
    }
    assert (one["jmx"]["fetch_purgatory"], one["jmx"]["isr_shrinks"]["sampled"]) == (12, 6)
