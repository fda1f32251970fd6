"""The demo on a slow machine: it waits for the alert that its own start raises."""

from __future__ import annotations

from tidemark.demo.scenes import SLOW_START_SECONDS
from tidemark_exporters.notify.derived_alerts import FRESH_SECONDS
from tidemark_exporters.notify.retrying_sender import LONGEST_WAIT_SECONDS


def test_a_slow_start_has_time_to_resolve() -> None:
    assert SLOW_START_SECONDS >= FRESH_SECONDS + LONGEST_WAIT_SECONDS
