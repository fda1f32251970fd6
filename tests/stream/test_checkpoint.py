"""`tidemark.json` of a checkpoint: written once, and what a start without it says."""

from __future__ import annotations

import pytest

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings
from tidemark.stream.checkpoint import (
    FixedSettings,
    decode_fixed_settings,
    fix_settings,
    fixed_settings,
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


def test_the_file_of_an_earlier_version_is_refused_with_the_cure() -> None:
    """It fixed the groups twice, and noted which checkpoint had taken over its state."""
    text = (
        '{"v": 1, "topic": "tidemark.replica-state", "partitions": 16, "shuffle_partitions": 16,'
        ' "store_provider": "hdfs", "replaced_by": "/new"}'
    )
    folder = Folder(used=True)
    folder.fixed = decode_fixed_settings(text, "/c")
    with pytest.raises(ConfigError) as caught:
        fix(folder)
    assert str(caught.value) == (
        "the checkpoint /c has version 1, and this Tidemark reads 2. Start the Tidemark that wrote "
        "it, or give a new stream.checkpoint: the state is then built again from the events that "
        "the topic still holds."
    )
