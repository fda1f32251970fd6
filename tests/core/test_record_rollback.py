"""An exporter or a stream goes back to 0.1.0: what it makes of newer views, alerts and state.

`tests/testdata/upgrade/0.1.0` has that version's modules; they never change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from msgspec import inspect

from tests.conftest import ROOT
from tests.core.test_rollback import FOLDER, assert_within, filled
from tests.traces import batches
from tidemark.core import records
from tidemark.core.codec import encode_batch
from tidemark.detect.thresholds import Detection
from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord, Row
from tidemark.stream.stored_state import to_stored

TRACES = sorted((ROOT / "tests" / "testdata" / "traces").glob("*.jsonl"))


def load(name: str) -> Iterator[ModuleType]:
    """A module of 0.1.0."""
    module = ModuleType(f"tidemark_0_1_0_{name}")
    sys.modules[module.__name__] = module
    source = (FOLDER / f"{name}.py.txt").read_text(encoding="utf-8")
    exec(compile(source, module.__name__, "exec"), module.__dict__)  # noqa: S102 - our own file
    yield module
    del sys.modules[module.__name__]


@pytest.fixture(scope="module")
def old() -> Iterator[ModuleType]:
    yield from load("records")


@pytest.fixture(scope="module")
def old_state() -> Iterator[ModuleType]:
    yield from load("group_state")


def check_read(old: ModuleType, data: bytes) -> None:
    """Each field that 0.1.0 knows has the value that was written."""
    read = old.decode_record(data)
    assert_within(json.loads(old.encode_record(read)), json.loads(data))


def rows_of(path: Any) -> tuple[bytes, list[Row]]:
    found = batches(path.read_text(encoding="utf-8").splitlines())
    raw = [RawRecord(0, place, 0.0, encode_batch(batch)) for place, batch in enumerate(found)]
    return fold_group(None, raw, Detection(), 0, 1)


@pytest.mark.parametrize("kind", [records.Alert, records.View, records.DeadLetter])
def test_a_record_with_all_newer_fields_is_read_by_0_1_0(old: ModuleType, kind: type) -> None:
    record = filled(inspect.type_info(kind))
    record.v = records.RECORD_VERSION
    check_read(old, records.encode_record(record))


@pytest.mark.parametrize("name", ["Severity", "AlertState", "Reason"])
def test_0_1_0_knows_every_word_of_an_alert(old: ModuleType, name: str) -> None:
    words = getattr(records, name).__args__
    assert {*words} <= {*getattr(old, name).__args__}


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_what_this_version_publishes_is_read_by_0_1_0(old: ModuleType, path: Any) -> None:
    _, rows = rows_of(path)
    values = [row.value for row in rows if row.value is not None]
    assert {row.destination for row in rows} == {"partition_views", "alerts"}
    for value in values:
        check_read(old, value)


def test_0_1_0_refuses_the_state_of_this_version(old_state: ModuleType) -> None:
    """As docs/operations.md says: it ends, and reads nothing wrongly."""
    blob, _ = rows_of(TRACES[0])
    assert old_state.decode_group(old_state.encode_group(old_state.GroupState())).due == {}
    with pytest.raises(AssertionError, match="group state version 2"):
        old_state.decode_group(to_stored(blob))
