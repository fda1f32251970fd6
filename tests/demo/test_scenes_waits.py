"""The waits of the demo's scenes, against what they wait for."""

from __future__ import annotations

from tests.delivery.services import deployed_configuration
from tidemark_exporters.notify.address import LONGEST_WAIT_SECONDS
from tidemark_exporters.notify.derived_alerts import FRESH_SECONDS
from tidemark_lab.demo.schedule import OFFLINE_SECONDS, SLOW_START_SECONDS


def test_a_slow_start_has_time_to_resolve() -> None:
    assert SLOW_START_SECONDS >= FRESH_SECONDS + LONGEST_WAIT_SECONDS


def test_alertmanager_sends_the_offline_page_before_it_resolves() -> None:
    routes = deployed_configuration("http://127.0.0.1:1/")["route"]["routes"]
    waits = [
        float(each["group_wait"].removesuffix("s"))
        for each in routes
        if each["matchers"] == ["severity = critical"]
    ]
    assert waits
    assert max(waits) < OFFLINE_SECONDS
