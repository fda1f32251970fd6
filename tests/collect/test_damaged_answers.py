"""Damaged answers are refused, or decoded as kafka-python decodes them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collect import test_codecs, test_metadata_codec
from tests.collect.recorded_answers import try_library
from tidemark.collect.codecs import fetch
from tidemark.collect.codecs.list_offsets import decode_list_offsets
from tidemark.collect.codecs.metadata import METADATA, MetadataDecoder
from tidemark.collect.codecs.wire import FETCH, LIST_OFFSETS
from tidemark.core.errors import WireError


class Codec(NamedTuple):
    """Whole answers of an API, its versions, and a new decoder.

    What a decoder has read before must not matter: that of metadata remembers its topics.
    """

    api_key: int
    answers: st.SearchStrategy[Any]
    versions: st.SearchStrategy[int]
    make: Callable[[], Callable[[bytes, int], object]]


CODECS = [
    Codec(
        FETCH,
        test_codecs.fetch_answers(),
        st.just(fetch.VERSION),
        lambda: lambda body, _: fetch.decode_fetch(body),
    ),
    Codec(
        LIST_OFFSETS,
        test_codecs.list_offsets_answers(),
        test_codecs.VERSIONS,
        lambda: decode_list_offsets,
    ),
    Codec(
        METADATA,
        test_metadata_codec.answers(),
        test_metadata_codec.VERSIONS,
        lambda: MetadataDecoder().decode,
    ),
]
each_codec = pytest.mark.parametrize("codec", CODECS, ids=["fetch", "list_offsets", "metadata"])


@each_codec
@given(data=st.data())
def test_a_truncated_or_lengthened_answer_is_refused(codec: Codec, data: st.DataObject) -> None:
    version, decode = data.draw(codec.versions), codec.make()
    whole = bytes(data.draw(codec.answers).encode(version=version))
    if data.draw(st.booleans()):
        decode(whole, version)
    cut = data.draw(st.integers(0, len(whole) - 1))
    for wrong in (whole[:cut], whole + data.draw(st.binary(min_size=1, max_size=60))):
        with pytest.raises(WireError):
            decode(wrong, version)


@each_codec
@given(data=st.data())
@settings(max_examples=300)
def test_a_changed_byte_gives_an_error_or_the_librarys_result(
    codec: Codec, data: st.DataObject
) -> None:
    version, decode = data.draw(codec.versions), codec.make()
    changed = bytearray(data.draw(codec.answers).encode(version=version))
    decode(bytes(changed), version)
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        ours = decode(bytes(changed), version)
    except WireError:
        return
    # Outside of any `suppress`: a difference is an AssertionError too.
    assert try_library(codec.api_key, bytes(changed), version) in (None, ours)


@each_codec
@given(data=st.data())
def test_arbitrary_bytes_raise_only_wire_errors(codec: Codec, data: st.DataObject) -> None:
    with contextlib.suppress(WireError):
        codec.make()(data.draw(st.binary(max_size=400)), data.draw(codec.versions))
