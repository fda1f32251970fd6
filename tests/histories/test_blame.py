"""Whom alerts name: bounded here, 2,000 histories in `make soak`."""

from __future__ import annotations

import os

import pytest

from tests.histories.blame import BENIGN, KINDS, Campaign

# A history takes a second.
HISTORIES = int(os.environ.get("BLAME_HISTORIES", "40"))


@pytest.mark.slow
def test_alerts_name_the_guilty_broker_and_no_healthy_one() -> None:
    campaign = Campaign()
    # In the last one, a part of three passes in a row fails by chance.
    for seed in (*range(HISTORIES), 1701489):
        campaign.run(seed)
    campaign.report()
    assert campaign.share("guilty") >= 0.9, campaign.counts
    assert campaign.share("healthy") <= 0.01, campaign.wrong
    assert campaign.benign == 0, campaign.wrong


def test_no_kind_of_history_is_without_a_guilty_broker_by_mistake() -> None:
    assert {kind for kind, each in KINDS.items() if not each.names_guilty} == {
        *BENIGN,
        "slow link",
    }
