"""What the view of a broker shows of its JMX, and for how long."""

from __future__ import annotations

from typing import Any

from tidemark.core.broker_seen import BrokerSeen
from tidemark.core.cluster import ClusterState, CollectorClock
from tidemark.core.events import OK, BrokerState, JmxFigures
from tidemark.evolve.cluster import apply_broker
from tidemark.reduce.life_cycle import Rules
from tidemark.reduce.view_parts import FRESH_SECONDS, SETTLE_SECONDS, jmx_view
from tidemark.reduce.views import cluster_views

RULES = Rules(3, 2, 86_400_000.0, {})


def state(at: float, **figures: Any) -> BrokerState:
    return BrokerState(broker=1, observed_at=at, fetch_purgatory=2, jmx=JmxFigures(**figures))


def test_old_figures_are_unknown() -> None:
    cluster = ClusterState(brokers={1: BrokerSeen(OK, 1.0)})
    apply_broker(cluster, state(100.0, failed_isr_updates=3))
    shown = jmx_view(cluster.nodes[1], 100.0 + FRESH_SECONDS)
    assert shown is not None
    assert (shown.read_at, shown.fetch_purgatory, shown.produce_purgatory) == (100.0, 2, None)
    assert jmx_view(cluster.nodes[1], 100.1 + FRESH_SECONDS) is None


def test_a_difference_is_shown_once_late_reads_do_not_explain_it() -> None:
    clock = CollectorClock(5, 1, 10.0, 10.0, 1000.0, led_shrinks={1: (0, 0)})
    cluster = ClusterState(collectors={"a": clock})
    for at, shrinks in ((100.0, 7), (110.0, 8)):
        apply_broker(cluster, state(at, isr_shrinks=shrinks))
    shown = []
    for now in (109.9 + SETTLE_SECONDS, 110.0 + SETTLE_SECONDS):
        view = jmx_view(cluster.nodes[1], now)
        assert view is not None
        assert view.isr_shrinks is not None
        shown.append(view.isr_shrinks)
    assert [counts.differs_since for counts in shown] == [None, 110.0]
    assert [(counts.by_jmx, counts.sampled) for counts in shown] == [(1, 0), (1, 0)]


def test_nodes_that_are_no_brokers_are_shown_with_the_cluster() -> None:
    cluster = ClusterState(brokers={1: BrokerSeen(OK, 1.0)})
    apply_broker(cluster, state(100.0, isr_shrinks=3))
    controller = BrokerState(
        broker=100, observed_at=100.0, jmx=JmxFigures(unclean_leader_elections=4)
    )
    apply_broker(cluster, controller)
    whole, broker = cluster_views(
        cluster, "c", RULES, collector="k", pass_number=1, period_ms=1e3, now=101.0
    )
    assert [*whole.jmx_of_nodes] == ["100"]
    assert broker.jmx is not None
    assert broker.jmx.figures.isr_shrinks == 3
    shown = whole.jmx_of_nodes["100"]
    # Counted from the first read on.
    assert (shown.unclean_leader_elections, shown.unclean_leader_elections_since) == (0, 100.0)
