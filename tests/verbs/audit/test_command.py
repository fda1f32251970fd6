"""The command line of the audit."""

from __future__ import annotations

import click
import pytest

from tests.verbs.run import tidemark
from tidemark.command_line.places import partition_of, read_places, selected

NOTATIONS = ("o.v2-3", "o.v2/3", "o.v2:3", "o.v2 3", "c/o.v2/3", "c/o.v2-3", "c/o.v2:3")


def test_one_partition_in_every_notation() -> None:
    for text in NOTATIONS:
        for words in ([text], text.split()):
            (place,) = read_places(words)
            assert (str(place), place.cluster) == ("o.v2-3", "c" if "c/" in text else None)
        assert partition_of(text) == place
    assert selected(read_places(["0", "a-b", "o", "7", "a-b-12"]), ["a-b"]) == (
        {("o", 7), ("a-b", 12)},
        {"a-b", "0"},
    )
    # A topic whose own name ends in a number.
    assert selected(read_places(["o-1", "o-2", "o-2/4"]), ["o-1"]) == (
        {("o", 2), ("o-2", 4)},
        {"o-1"},
    )
    for text in ("orders:", "orders:x", "a/b", "", "a/b/c/1", "o-99999999999", "o-2147483648"):
        with pytest.raises(click.BadParameter, match=r"is no (topic|partition)|names no partition"):
            partition_of(text)


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    err = tidemark("audit", "--bootstrap", "127.0.0.1:1", code=1).err
    assert "refused the connection" in err
