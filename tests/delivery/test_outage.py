"""A receiver that was down for two minutes gets each state of each alert once when it returns."""

from __future__ import annotations

import pytest

from tests.delivery.outage import DOWN_SECONDS, Outage

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_receivers_that_were_down_for_two_minutes_get_everything_once(outage: Outage) -> None:
    outage.over()
    figures = outage.figures
    print(figures)
    assert figures["down seconds"] >= DOWN_SECONDS
    # It tried all the time, and one alert has waited for most of it.
    assert figures["webhook: attempts in vain"] > DOWN_SECONDS / 10
    assert figures["webhook: seconds that the oldest waits"] > DOWN_SECONDS - 10
    assert figures["webhook: alerts that wait"] == len(outage.expected()) - 2
    for way, told in outage.told().items():
        assert sorted(told) == outage.expected(), way
        assert told.index(("comes and goes", "firing")) < told.index(
            ("comes and goes", "resolved")
        ), way
    assert outage.words("changes") == {"Newer words."}


def test_what_is_urgent_comes_first(outage: Outage) -> None:
    outage.over()
    news = [name for name, _ in outage.told()["webhook"]][2:]
    assert set(news[:2]) == {"loss", "second loss"}
