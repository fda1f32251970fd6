"""The mapping of jmx_exporter's text to figures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidemark.collect.sources.jmx.figures import (
    FIGURES,
    MAX_BODY_BYTES,
    MAX_LINE_BYTES,
    FigureReader,
    ScrapeError,
)
from tidemark.core.codec import encode_event
from tidemark.core.events import BrokerState, JmxFigures

TEXTS = Path(__file__).parents[2] / "testdata" / "jmx"


def read(text: str | bytes, broker: int = 1) -> BrokerState:
    reader = FigureReader()
    reader.feed(text.encode() if isinstance(text, str) else text)
    return reader.event(broker, 9.0)


def figures(text: str) -> JmxFigures:
    found = read(text).jmx
    assert found is not None
    return found


EXPECTED = BrokerState(
    broker=3,
    observed_at=9.0,
    produce_purgatory=4,
    fetch_purgatory=2,
    jmx=JmxFigures(
        started_at=1795357747.729,
        isr_shrinks=3,
        isr_expands=2,
        failed_isr_updates=1,
        under_replicated_partitions=5,
        offline_replicas=0,
        fetcher_max_lag_records=17,
        fetcher_min_rate=1.5,
        failed_fetcher_partitions=0,
        dead_fetcher_threads=0,
        produce_purgatory_watches=8,
        fetch_purgatory_watches=12,
        expired_produces=6,
        expired_follower_fetches=40,
        expired_consumer_fetches=30,
    ),
)


@pytest.mark.parametrize("rules", ["tidemark", "kafka-2_0_0", "none"])
def test_the_three_forms_of_names_give_the_same_figures(rules: str) -> None:
    """The texts are those of a real broker 4.1.2 with jmx_exporter 1.0.1, with other values."""
    found = read((TEXTS / f"{rules}.txt").read_bytes(), broker=3)
    assert found.jmx is not None
    if rules == "kafka-2_0_0":
        # Its rules take no bean without a name.
        assert found.jmx.started_at is None
        found.jmx.started_at = EXPECTED.jmx.started_at if EXPECTED.jmx else None
    assert found == EXPECTED


def test_figures_of_a_controller() -> None:
    found = figures((TEXTS / "controller.txt").read_text(encoding="utf-8"))
    assert (found.unclean_leader_elections, found.is_active_controller) == (2, True)
    assert found.last_applied_record_lag_ms == 421


@pytest.mark.parametrize("value", ["NaN", "-1.0", "+Inf", "1e300", "0.5", "x", "9.3e18"])
def test_an_impossible_count_is_unknown(value: str) -> None:
    text = f"kafka_server_replicamanager_isrshrinks_total {value}\n"
    text += "kafka_server_replicamanager_isrexpands_total 3.0 1795357747000\n"
    assert figures(text) == JmxFigures(isr_expands=3)


def test_series_of_topics_and_cut_lines_are_no_figures() -> None:
    purgatory = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
    text = (
        'kafka_server_delayedproducemetrics_expires_total{topic="t",partition="0"} 7.0\n'
        f'{purgatory}{{delayedOperation="Produce"}} 5.0\n'
        f'{purgatory}{{delayedOperation="Heartbeat"}} 6.0\n'
        f'{purgatory}{{delayedOperation="Fetch"}} 12'
    )
    assert read(text) == BrokerState(
        broker=1, observed_at=9.0, produce_purgatory=5, jmx=JmxFigures()
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the answer is empty"),
        ("<!doctype html>\n<p>kafka", "is HTML"),
        ("\x00\x01\x02\n", "no Prometheus text"),
        ('{"kafka": 1}\n', "no Prometheus text"),
        ("# HELP go_goroutines x\ngo_goroutines 7\n", "none of a broker's figures.*deploy/jmx"),
        ('kafka_server_app_info_starttimems{id="2"} 1.0\n', "that of broker 2"),
    ],
)
def test_what_is_no_broker_says_why(text: str, reason: str) -> None:
    with pytest.raises(ScrapeError, match=reason):
        read(text)


def test_the_body_and_a_line_are_bounded() -> None:
    reader = FigureReader()
    with pytest.raises(ScrapeError, match="a line is longer than 64 KiB"):
        reader.feed(b"x" * (MAX_LINE_BYTES + 1))
    reader = FigureReader()
    with pytest.raises(ScrapeError, match="more than 10000 figures"):
        reader.feed(b"kafka_server_replicamanager_x 1\n" * 10_001)
    reader, piece = FigureReader(), b"kafka_x 1\n" * 100_000
    for _ in range(MAX_BODY_BYTES // len(piece)):
        reader.feed(piece)
    with pytest.raises(ScrapeError, match="longer than 64 MiB"):
        reader.feed(piece)


NAMES = st.sampled_from(sorted({name for name, _ in FIGURES}))
VARIANTS = st.sampled_from(sorted({str(variant) for _, variant in FIGURES}))
LINES = st.builds(
    '{}{}{{delayedOperation="{}",{}}} {}'.format,
    NAMES,
    st.sampled_from(["", "_total", "_value", "_count"]),
    VARIANTS,
    st.one_of(st.just(""), st.text(max_size=20)),
    st.one_of(st.floats().map(str), st.integers().map(str), st.text(max_size=10)),
)
BODIES = st.one_of(
    st.binary(max_size=300), st.lists(LINES).map(lambda lines: "\n".join([*lines, ""]).encode())
)


@given(body=BODIES, cuts=st.lists(st.integers(0, 400), max_size=5))
@example(body=b'kafka_server_app_info_starttimems{id="\xc2\xb2"} 1\n', cuts=[])
def test_any_body_gives_an_event_that_fits_the_schema_or_a_reason(
    body: bytes, cuts: list[int]
) -> None:
    def result(pieces: list[bytes]) -> BrokerState | str:
        reader = FigureReader()
        try:
            for piece in pieces:
                reader.feed(piece)
            return reader.event(1, 9.0)
        except ScrapeError as error:
            return str(error)

    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    whole = result([body])
    assert whole == result([body[a:b] for a, b in pairwise(edges)])
    if isinstance(whole, BrokerState):
        assert msgspec.json.decode(encode_event(whole), type=BrokerState) == whole
