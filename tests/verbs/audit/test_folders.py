"""An audit of data folders, or copies of them: segments, checkpoints, damage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.verbs.audit.logs import Written, encode, legacy, written
from tests.verbs.run import Output, outcome, tidemark

LOG = written(*[5] * 20)
OTHER = [b.with_value(42, b"other") for b in LOG]
PLACE = "orders-0"


def folder(
    at: Path,
    log: Sequence[Written],
    *,
    node: int | None = None,
    per_segment: int = 7,
    mark: int | None = None,
    cleaned: str | None = "",
) -> Path:
    """A data folder with one partition."""
    partition = at / PLACE
    partition.mkdir(parents=True)
    (at / "orders-1-delete").mkdir()
    for first in range(0, len(log), per_segment):
        batches = log[first : first + per_segment]
        (partition / f"{batches[0].base:020}.log").write_bytes(encode(batches))
    if node is not None:
        (at / "meta.properties").write_text(f"version=1\nnode.id={node}\n")
    if mark is not None:
        (at / "replication-offset-checkpoint").write_text(f"0\n1\norders 0 {mark}\n")
    if cleaned is not None:
        (at / "cleaner-offset-checkpoint").write_text(f"0\n{bool(cleaned):d}\n{cleaned}")
    return at


def audit(*folders: Path, code: int = 0, options: Sequence[str] = ("--whole",)) -> Output:
    flags = [part for path in folders for part in ("--log-dirs", str(path))]
    return tidemark("audit", *options, *flags, code=code)


def test_equal_folders(tmp_path: Path) -> None:
    a = folder(tmp_path / "a", LOG, node=4, mark=100)
    b = folder(tmp_path / "b", LOG, node=7, mark=90, per_segment=3)
    assert audit(a, b).out.splitlines() == [
        f"broker 4: {a}",
        f"broker 7: {b}",
        "no difference in 90 offsets of 1 partition (whole).",
    ]


@pytest.mark.parametrize("options", [("--whole",), ("--sample", "3", "--seed", "7")])
def test_a_difference_is_named(tmp_path: Path, options: Sequence[str]) -> None:
    a = folder(tmp_path / "a", LOG, node=4, mark=100)
    b = folder(tmp_path / "b", OTHER, node=7, mark=100)
    lines = audit(a, b, code=3, options=options).out.splitlines()
    assert lines[2].startswith(
        "orders-0: offset 42: broker 4 holds batch 40–44 of epoch 0 with CRC"
    )
    assert lines[2].endswith("1 record differs, the first at 42.")
    read = "whole" if options == ("--whole",) else "sampled: --sample 3 --seed 7"
    assert lines[3] == f"1 difference in 100 offsets of 1 partition ({read})."


def test_the_document(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", LOG, mark=100), folder(tmp_path / "b", OTHER, mark=100)
    found = json.loads(audit(a, b, code=3, options=("--whole", "--json")).out)
    assert (found["differences"], found["whole"], found["folders"]) == (
        1,
        True,
        {"1": str(a), "2": str(b)},
    )
    (partition,) = found["partitions"]
    assert (partition["topic"], partition["partition"], partition["end_offset"]) == (
        "orders",
        0,
        100,
    )
    (finding,) = partition["findings"]
    assert (finding["offset"], finding["differing_records"]) == (42, 1)
    assert [batch["broker"] for batch in finding["batches"]] == [1, 2]


def test_without_checkpoints_it_compares_up_to_the_common_end_and_says_so(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", LOG, cleaned=None), folder(tmp_path / "b", LOG[:10])
    out = audit(a, b).out
    assert "no difference in 50 offsets" in out
    assert "a copy has no whole replication-offset-checkpoint: compared up to the common end" in out
    assert "the cleanup policy is unknown" in out


def test_a_cleaned_log_may_lack_records(tmp_path: Path) -> None:
    cleaned = [b.without(41) for b in LOG]
    a = folder(tmp_path / "a", LOG, mark=100, cleaned="orders 0 90\n")
    out = audit(a, folder(tmp_path / "b", cleaned, mark=100)).out
    assert "orders-0: cleaned: 1 record not on every replica, not compared" in out
    b = folder(tmp_path / "c", cleaned, mark=100)
    out = audit(folder(tmp_path / "d", LOG, mark=100), b, code=3).out
    assert "offset 41: " in out


def test_an_offset_that_is_cut_is_no_high_watermark(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", LOG, mark=90), folder(tmp_path / "b", LOG, mark=90)
    (b / "replication-offset-checkpoint").write_text("0\n1\norders 0 9")
    out = audit(a, b).out
    assert "a copy has no whole replication-offset-checkpoint" in out
    assert "no difference in 90 offsets" in out


@pytest.mark.parametrize(("segment", "whole"), [(0, 4), (2, 18)])
def test_a_cut_batch_is_named_with_its_place(tmp_path: Path, segment: int, whole: int) -> None:
    a, b = folder(tmp_path / "a", LOG, mark=100), folder(tmp_path / "b", LOG, mark=100)
    path = sorted((b / PLACE).glob("*.log"))[segment]
    size = len(encode(LOG[segment * 7 : whole]))
    path.write_bytes(path.read_bytes()[: size + 30])
    out = audit(a, b).out
    assert f"{path}, byte {size}: the file ends within a batch" in out
    assert f"no difference in {whole * 5}" in out


def test_messages_of_old_formats(tmp_path: Path) -> None:
    for name, value in (("a", b"x"), ("b", b"y")):
        at = folder(tmp_path / name, [], mark=3, cleaned="")
        (at / PLACE / f"{0:020}.log").write_bytes(legacy(1, (0, b"same"), (1, value), (2, b"same")))
    out = audit(tmp_path / "a", tmp_path / "b", code=3).out
    assert "orders-0: offset 1: broker 1 holds batch 1–1 with CRC" in out


def test_one_folder_is_not_enough(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", LOG, node=4), folder(tmp_path / "b", LOG, node=4)
    text = "two brokers or more, each behind its own --log-dirs; these are of one."
    assert text in audit(a, b, code=2).err
    assert "no folder holds logs-0" in tidemark(
        "audit", "logs:0", "--log-dirs", str(a), "--log-dirs", str(folder(tmp_path / "c", LOG)),
        code=2,
    ).err  # fmt: skip
    err = audit(a, b, code=2, options=("--publish",)).err
    assert "--log-dirs compares folders only" in err


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_end_with_a_result(tmp_path: Path, data: st.DataObject) -> None:
    number = len(list(tmp_path.iterdir()))
    a = folder(tmp_path / f"a{number}", LOG, mark=100)
    b = folder(tmp_path / f"b{number}", LOG, mark=100)
    path = data.draw(st.sampled_from(sorted(p for p in b.rglob("*") if p.is_file())))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 6)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    path.write_bytes(content)
    code, shown = outcome("audit", "--whole", "--log-dirs", str(a), "--log-dirs", str(b))
    assert code in {0, 3} or (code == 1 and "nothing was compared" in shown.err)
