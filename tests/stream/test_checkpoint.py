"""`tidemark.json` of a checkpoint: written once, and what a start without it says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings
from tidemark.stream.checkpoint import (
    FixedSettings,
    decode_fixed_settings,
    fix_settings,
    fixed_settings,
    may_hold_rocksdb,
)

WANTED = fixed_settings(Settings())


class Folder:
    """A checkpoint's folder in memory."""

    checkpoint = "/c"

    def __init__(self, used: bool) -> None:
        self.used = used
        self.fixed: FixedSettings | None = None

    def fixed_settings(self) -> FixedSettings | None:
        return self.fixed

    def is_used(self) -> bool:
        return self.used

    def write(self, fixed: FixedSettings) -> None:
        self.fixed = fixed


def fix(folder: Folder) -> None:
    fix_settings(folder, WANTED)  # type: ignore[arg-type]


def test_the_first_start_writes_what_later_ones_find() -> None:
    folder = Folder(used=False)
    fix(folder)
    assert folder.fixed == WANTED
    folder.used = True
    fix(folder)


def test_a_lost_file_is_named_with_the_way_out_and_not_written_again() -> None:
    folder = Folder(used=True)
    with pytest.raises(ConfigError) as caught:
        fix(folder)
    text = str(caught.value)
    assert text.startswith("the checkpoint /c has no tidemark.json: the file is lost, or ")
    assert "Restore the file, or the whole folder, from a copy; or set stream.checkpoint" in text
    assert folder.fixed is None


@pytest.mark.parametrize("data", ["", '{"v":1,"topic"', "[]", '{"v":1}', '{"v":"1"}', "\0"])
def test_a_damaged_file_is_named_with_the_way_out(data: str) -> None:
    with pytest.raises(ConfigError, match=r"^/c/tidemark\.json cannot be read: ") as caught:
        decode_fixed_settings(data, "/c")
    assert str(caught.value).endswith(
        ". Restore it from a copy, or set stream.checkpoint to a new folder."
    )


@pytest.mark.parametrize(
    ("data", "rocksdb"),
    [(structs.replace(WANTED, store_provider="rocksdb"), True), (WANTED, False), ({}, False)],
)
def test_the_state_store_is_known_before_there_is_a_jvm(
    tmp_path: Path, data: object, rocksdb: bool
) -> None:
    (tmp_path / "tidemark.json").write_bytes(msgspec.json.encode(data))
    assert may_hold_rocksdb(str(tmp_path)) is may_hold_rocksdb(tmp_path.as_uri()) is rocksdb


def test_a_state_store_elsewhere_may_be_rocksdb(tmp_path: Path) -> None:
    assert may_hold_rocksdb("s3a://bucket/c")
    assert not may_hold_rocksdb(str(tmp_path / "nothing"))


def test_a_damaged_file_is_not_taken_for_rocksdb(tmp_path: Path) -> None:
    for data in (b"", b"\xff\xfe", b'{"topic": "\xff"}', msgspec.json.encode(WANTED)[:20]):
        (tmp_path / "tidemark.json").write_bytes(data)
        assert not may_hold_rocksdb(str(tmp_path))
