from __future__ import annotations

import pytest

from tidemark_exporters.pages.query import BadRequestError, Query


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("nonsense=1", "unknown parameter `nonsense`; there are: q, page, limit, state."),
        ("q=a&q=b", "q is given twice."),
        ("q=%ff", "the query cannot be read: it needs UTF-8 and at most 32 parameters."),
        (
            "&".join(["q=1"] * 40),
            "the query cannot be read: it needs UTF-8 and at most 32 parameters.",
        ),
        ("q=" + "x" * 5_000, "the query has 5002 characters; at most 4096 are read."),
        ("page=0", "page must be a whole number from 1 to 1000000, not `0`."),
        ("page=-1", "page must be a whole number from 1 to 1000000, not `-1`."),
        ("page=1e3", "page must be a whole number from 1 to 1000000, not `1e3`."),
        ("page=%D9%A3", "page must be a whole number from 1 to 1000000, not `٣`."),
        ("page=" + "9" * 40, f"page must be a whole number from 1 to 1000000, not `{'9' * 40}`."),
        ("limit=1001", "limit must be a whole number from 1 to 1000, not `1001`."),
        ("state=up%0ddown", "state must be one of a, b, not `up�down`."),
    ],
)
def test_what_is_wrong_is_told_in_one_line(raw: str, told: str) -> None:
    with pytest.raises(BadRequestError) as error:
        read(raw)
    assert str(error.value) == told


def read(raw: str) -> None:
    query = Query(raw, ("q", "page", "limit", "state"))
    query.paging()
    query.choice("state", ("a", "b"))


def test_an_empty_parameter_is_one_that_was_not_given() -> None:
    query = Query("q=&page=&state=", ("q", "page", "limit", "state"))
    assert query.given == {}
    assert query.paging() == (1, 100)
    with pytest.raises(BadRequestError, match=r"^q is missing\.$"):
        query.needed("q")
