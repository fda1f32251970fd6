"""The command line of the audit."""

from __future__ import annotations

import pytest

from tests.verbs.run import tidemark
from tidemark.core.errors import ConfigError
from tidemark.verbs.audit.command import parse_places


def test_places() -> None:
    assert parse_places(["orders", "orders.v2:3", "a-b:12"]) == (
        {("orders.v2", 3), ("a-b", 12)},
        {"orders"},
    )
    for text in ("orders:", "orders:x", "a/b", ""):
        with pytest.raises(ConfigError, match="write TOPIC or TOPIC:PARTITION"):
            parse_places([text])


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    err = tidemark("audit", "--bootstrap", "127.0.0.1:1", code=1).err
    assert "refused the connection" in err
