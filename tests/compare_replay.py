"""`python -m tests.compare_replay BEFORE AFTER [FILE ...]`: the effect of a change on replays.

BEFORE and AFTER are two `tidemark` commands, from the environments of two checkouts. Both replay
the files of events, or else every trace and scenario of the tests. Prints each value that differs,
and counts reworded texts apart. Exits with 1 where a record differs by more than its texts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.conftest import ROOT
from tests.scenarios.scenario import Scenario
from tests.scenarios.text import play, scenario_files
from tests.traces import batches
from tidemark.core.codec import encode_batch

TEXTS = ("description", "summary")
TESTDATA = ROOT / "tests" / "testdata"


def write_events(folder: Path) -> Iterator[Path]:
    """The traces and scenarios as files of events, a scenario with a file of its thresholds."""
    for path in sorted((TESTDATA / "traces").glob("*.jsonl")):
        file = folder / f"{path.stem}.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        file.write_bytes(b"".join(encode_batch(batch) + b"\n" for batch in batches(lines)))
        yield file
    for path in scenario_files(TESTDATA / "detect"):
        scenario, file = Scenario(), folder / f"{path.stem}.jsonl"
        play(path.read_text(encoding="utf-8"), scenario)
        file.write_bytes(b"".join(encode_batch(batch) + b"\n" for batch in scenario.batches))
        thresholds = {"thresholds": msgspec.to_builtins(scenario.thresholds)}
        file.with_suffix(".yaml").write_text(yaml.safe_dump(thresholds), encoding="utf-8")
        yield file


def replay(tidemark: str, file: Path) -> list[dict[str, Any]]:
    thresholds = file.with_suffix(".yaml")
    options = ["--thresholds", str(thresholds)] if thresholds.exists() else []
    command = [tidemark, "replay", str(file), "--json", *options]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in out.splitlines()]


def take_texts(value: Any) -> list[str]:
    """Removes the texts of all alerts in a record, and returns them."""
    found = []
    if isinstance(value, dict):
        annotations = value.get("annotations", {})
        found = [annotations.pop(name) for name in TEXTS if name in annotations]
        value = list(value.values())
    if isinstance(value, list):
        found += [text for each in value for text in take_texts(each)]
    return found


def differences(old: Any, new: Any, place: str = "$") -> Iterator[str]:
    """A line for each value that differs, with its place as a JSON path."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old | new:
            yield from differences(old.get(key), new.get(key), f"{place}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif old != new:
        yield f"{place}: {json.dumps(old)} -> {json.dumps(new)}"


def compare(before: str, after: str, file: Path) -> Counter[str]:
    """Counts equal, reworded and different records; prints how the last differ."""
    counts = Counter[str]()
    pairs = zip_longest(replay(before, file), replay(after, file))
    for number, (old, new) in enumerate(pairs, 1):
        texts = take_texts(old), take_texts(new)
        if old == new:
            counts["equal" if texts[0] == texts[1] else "reworded"] += 1
        for line in differences(old, new):
            print(f"{file.name}, record {number}, {line}")
        counts["different"] += old != new
    return counts


def main(before: str, after: str, *files: str) -> int:
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for file in [Path(name) for name in files] or write_events(Path(folder)):
            counts += compare(before, after, file)
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("equal", "reworded", "different")))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
