"""The time from a fault that is visible from outside to the webhook, for each alert of the demo."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.row import Row
from tests.scenes.run import run_scenes


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        scenes = run_scenes(Path(folder))
    if scenes.code:
        raise RuntimeError(f"the demo ended with {scenes.code}:\n{scenes.output[-2000:]}")
    for row in scenes.report:
        if not row["received"] or row["detectable_at"] is None:
            continue
        seconds = row["received_at"] - row["detectable_at"]
        yield Row(
            name=f"detection: {row['scene']}, {row['alert']}",
            value=seconds,
            unit="s",
            target=f"<= {row['allowed_seconds']:g} s",
            met=seconds <= row["allowed_seconds"],
            how="one run of the demo; since a probe (every 200 ms) first saw the condition; "
            "target: 2 passes + 2 s + hysteresis",
        )
