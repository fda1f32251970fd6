"""Every verb that reads recordings prints the same for both versions of the events."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import version_1
from tests.verbs.recordings import trace, write
from tests.verbs.run import tidemark
from tidemark.core.codec import decode_batch


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, "replay {}"),
        (0, "replay {} --json"),
        (0, "timeline trace 0 --from {} --width 100"),
        (3, "inspect --losses --from {}"),
        (3, "safe-to-stop 1 --from {}"),
        (0, "top --from {}"),
    ],
)
def test_the_output_does_not_depend_on_the_version(
    tmp_path: Path, code: int, arguments: str
) -> None:
    lines = trace("unclean")
    old = [version_1.encode_batch(decode_batch(line)) for line in lines]
    # A recording over an upgrade has both.
    mixed = [pair[index % 2] for index, pair in enumerate(zip(lines, old, strict=True))]
    # The same path, which some verbs print.
    path, outputs = tmp_path / "events.jsonl", []
    for written in (lines, old, mixed):
        file = write(path, written)
        outputs.append(tidemark(*arguments.format(file).split(), code=code).out)
    assert outputs[0]
    assert outputs[1:] == [outputs[0], outputs[0]]
