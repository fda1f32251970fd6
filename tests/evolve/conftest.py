from __future__ import annotations

import pytest

from tidemark.core.cluster import ClusterState


@pytest.fixture
def cluster() -> ClusterState:
    """Nothing is known of it yet."""
    return ClusterState()
