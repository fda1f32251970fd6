"""Random histories of a simulated cluster, judged: bounded here, thousands in `make soak`."""

from __future__ import annotations

import os

import pytest

from tests.histories.campaign import Campaign

# A history takes 100 to 200 ms; it has two partitions on average.
HISTORIES = int(os.environ.get("HISTORIES", "250"))


@pytest.mark.slow
def test_every_claim_is_true() -> None:
    campaign = Campaign()
    campaign.play(0, HISTORIES)
    assert campaign.failures == {}


@pytest.mark.slow
def test_eligible_replicas_of_another_moment_prove_no_unclean_election() -> None:
    """Version 2c8b888 of the collector merged them unchecked; its recordings exist."""
    campaign = Campaign(mode="4.1", mixes_moments=True)
    campaign.play(1_000_000, HISTORIES // 5)
    kinds = [kind for kind in campaign.failures if kind.startswith("critical")]
    assert kinds == []
