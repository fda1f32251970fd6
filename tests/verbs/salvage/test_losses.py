"""Which offsets the alerts name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.verbs.inspect.test_losses import alert
from tests.verbs.recordings import write
from tests.verbs.run import tidemark
from tests.verbs.salvage.logs import log, save
from tidemark.core.records import Alert, encode_record


def loss(**options: object) -> Alert:
    evidence = {"proven": [5, 12], "exposed": [12, 14], "leader_epoch_before": 4}
    return alert(**{"evidence": evidence, **options})  # type: ignore[arg-type]


def offsets(out: str) -> list[int]:
    return [json.loads(line)["offset"] for line in out.splitlines()]


def test_the_proven_range_and_with_exposed_also_what_is_above_it(tmp_path: Path) -> None:
    folder = save(tmp_path / "orders-3", [*log(10), *log(5, start=10, epoch=5)])
    file = write(tmp_path / "alerts.jsonl", [encode_record(loss())])
    arguments = (str(folder), "--alerts", file, "--format", "jsonl")
    # The batch of epoch 5 is the new leader's.
    assert offsets(tidemark("salvage", *arguments, code=3).out) == [5, 6, 7, 8, 9]
    found = tidemark("salvage", *arguments, "--exposed", code=3)
    assert "[5, 14) of epochs up to 4: 5 records found, 4 offsets without" in found.err


def test_losses_of_partitions_that_are_not_saved_are_missing(tmp_path: Path) -> None:
    cut = save(tmp_path / "orders-3", log(40)) / f"{20:020}.log"
    # The broker came back and took it off its log.
    cut.rename(f"{cut}.deleted")
    file = write(
        tmp_path / "alerts.jsonl", [encode_record(loss()), encode_record(loss(topic="logs"))]
    )
    assert tidemark("salvage", str(tmp_path), "--alerts", file, code=3).out.splitlines()[-2:] == [
        "logs-3 [5, 12) of epochs up to 4: 0 records found: no log of it is saved here.",
        "orders-3 [5, 12) of epochs up to 4: 7 records found, all.",
    ]
    arguments = ("salvage", str(tmp_path), "--alerts", file, "--partition", "orders:3", "--exposed")
    assert "[5, 40) of epochs up to 4: 35 records found, all." in tidemark(*arguments).out


def test_no_loss_and_losses_of_two_clusters_are_errors(tmp_path: Path) -> None:
    save(tmp_path / "orders-3", log(20))
    none = write(tmp_path / "none.jsonl", [])
    assert (
        "no loss is known there" in tidemark("salvage", str(tmp_path), "--alerts", none, code=1).err
    )
    other = loss()
    other.labels["kafka_cluster"] = "other"
    two = write(tmp_path / "two.jsonl", [encode_record(loss()), encode_record(other)])
    arguments = ("salvage", str(tmp_path), "--alerts", two)
    assert "losses of several clusters" in tidemark(*arguments, code=2).err
    tidemark(*arguments, "--cluster", "main")
