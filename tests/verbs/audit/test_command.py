"""The command line of the audit."""

from __future__ import annotations

import click
import pytest

from tests.verbs.run import tidemark
from tidemark.command_line.arguments import topic_or_partition


def test_places() -> None:
    found = [topic_or_partition(text) for text in ("orders", "orders.v2:3", "a-b:12")]
    assert found == [("orders", None), ("orders.v2", 3), ("a-b", 12)]
    for text in ("orders:", "orders:x", "a/b", ""):
        with pytest.raises(click.BadParameter, match="write TOPIC or TOPIC:PARTITION"):
            topic_or_partition(text)


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    err = tidemark("audit", "--bootstrap", "127.0.0.1:1", code=1).err
    assert "refused the connection" in err
