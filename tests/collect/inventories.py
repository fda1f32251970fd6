"""Inventories that select topics."""

from __future__ import annotations

from tidemark.collect.metadata.inventory import Inventory
from tidemark.settings import Cluster


def everything() -> Inventory:
    """All topics are watched."""
    return Inventory(Cluster(name="c"), 1)
