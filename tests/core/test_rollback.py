"""A reader goes back to 0.1.0 while the collectors stay: it reads their events of version 1.

`tests/testdata/upgrade/0.1.0` has that version's modules of the events; they never change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from msgspec import inspect

from tests.conftest import ROOT
from tests.core.event_strategies import batches
from tidemark.core import codec, events

FOLDER = ROOT / "tests" / "testdata" / "upgrade" / "0.1.0"
KINDS: tuple[type[msgspec.Struct], ...] = get_args(events.Event)


@pytest.fixture(scope="module")
def old() -> Iterator[ModuleType]:
    """The codec of 0.1.0."""
    made = []
    for name in ("events", "codec"):
        source = (FOLDER / f"{name}.py.txt").read_text(encoding="utf-8")
        module = ModuleType(f"tidemark_0_1_0_{name}")
        sys.modules[module.__name__] = module
        text = source.replace("tidemark.core.events", "tidemark_0_1_0_events")
        exec(compile(text, module.__name__, "exec"), module.__dict__)  # noqa: S102 - our own file
        made.append(module)
    yield made[-1]
    for module in made:
        del sys.modules[module.__name__]


def filled(kind: inspect.Type) -> Any:
    """A value of a type with every field of each struct given."""
    match kind:
        case inspect.StructType():
            return kind.cls(**{each.name: filled(each.type) for each in kind.fields})
        case inspect.UnionType():
            return filled(next(t for t in kind.types if not isinstance(t, inspect.NoneType)))
        case inspect.ListType() | inspect.SetType():
            return [filled(kind.item_type)]
        case inspect.TupleType():
            return tuple(filled(each) for each in kind.item_types)
        case inspect.DictType():
            return {filled(kind.key_type): filled(kind.value_type)}
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.BoolType():
            return True
        case inspect.FloatType():
            return 1.5
        case inspect.IntType():
            return 7
        case inspect.AnyType():
            return ["of", {"evidence": 1}]
    assert isinstance(kind, inspect.StrType), kind
    return "name"


def check_read(old: ModuleType, batch: events.Batch) -> None:
    """Reads the whole batch; each field that 0.1.0 knows has the value that was written."""
    data = codec.encode_batch(batch)
    read, bad = old.salvage_batch(data)
    assert bad == []
    assert_within(json.loads(old.encode_batch(read)), json.loads(data))


def assert_within(part: Any, whole: Any) -> None:
    if isinstance(part, dict):
        assert part.keys() <= whole.keys()
        for key, value in part.items():
            assert_within(value, whole[key])
    elif isinstance(part, list):
        assert len(part) == len(whole)
        for each, other in zip(part, whole, strict=True):
            assert_within(each, other)
    else:
        assert part == whole


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_event_with_all_newer_fields_is_read_by_0_1_0(
    old: ModuleType, kind: type[msgspec.Struct]
) -> None:
    event: Any = filled(inspect.type_info(kind))
    check_read(
        old,
        events.Batch(
            v=1, cluster="c", collector="x", collector_epoch=1, pass_number=2, events=[event]
        ),
    )


@given(batch=batches)
def test_any_event_is_read_by_0_1_0(old: ModuleType, batch: events.Batch) -> None:
    check_read(old, batch)


def test_the_old_reader_refuses_version_2(old: ModuleType) -> None:
    """It says what to upgrade, and reads nothing wrongly: docs/operations.md, Upgrade."""
    with pytest.raises(Exception, match="upgrade the reader before the writer"):
        old.decode_batch(b'{"v":2,"cluster":"c","collector":"x","collector_epoch":1,"pass":2}')
