"""`tidemark top` from the command line: recordings, live passes in plain text, the served page."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.collect.fake_cluster import FakeCluster
from tests.delivery.services import free_port
from tests.verbs.recordings import trace, write
from tests.verbs.run import tidemark
from tidemark.core.codec import decode_batch, encode_batch
from tidemark.observations.recorded_lines import read_lines
from tidemark.verbs.top.live import Recorder
from tidemark_lab.brokers.wait import comes_true

SECONDS = 60.0


@pytest.fixture
def brokers() -> Iterator[FakeCluster]:
    cluster = FakeCluster()
    for number in range(4):
        cluster.topic(f"orders-{number}", 100 + number)
    yield cluster
    cluster.close()


def test_a_recording_as_text(tmp_path: Path) -> None:
    path = write(tmp_path / "unclean.jsonl", trace("unclean"))
    out = tidemark("top", "--from", path).out
    assert out.count("tidemark top  trace") == 1
    assert "7 committed records of trace-0 are lost: offsets [5, 12)" in " ".join(out.split())
    assert "1 → 2" in out and "unclean election" in out
    assert out.count("\x1b") == 0


def test_live_passes_as_blocks_of_text_and_their_recording(
    brokers: FakeCluster, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl.gz"
    for _ in range(2):
        live = ("top", "--bootstrap", brokers.address, "--every", "0.1", "--passes", "3")
        out = tidemark(*live, "--record", str(path)).out
        assert "3 brokers, 4 partitions" in out
        # The last pass always has one; on a busy machine it may be the only one.
        assert out.count("tidemark top  local") in {1, 2}
        assert "partitions: 4 healthy" in out
    replayed = tidemark("top", "--from", str(path)).out
    assert "3 brokers, 4 partitions" in replayed
    assert sum(1 for _ in read_lines([str(path)])) >= 6


def test_the_page_the_api_and_the_metrics_are_served(brokers: FakeCluster) -> None:
    port = free_port()
    found: dict[str, str] = {}

    def read() -> None:
        """Until each answers with the partitions; the passes go on meanwhile."""
        wanted = {
            "-/ready": "ready",
            "api/v1/partitions": "orders-3",
            "": "local",
            "metrics": "tidemark_partitions{",
        }

        def all_answer() -> bool:
            for path, text in wanted.items():
                with (
                    contextlib.suppress(OSError),
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}") as answer,
                ):
                    body = answer.read().decode()
                    if text in body:
                        found[path] = body
            return found.keys() == wanted.keys()

        # The assertions below say what is missing.
        comes_true(all_answer, SECONDS)
        # As Ctrl-C does.
        os.kill(os.getpid(), signal.SIGINT)

    reader = threading.Thread(target=read)
    reader.start()
    out = tidemark(
        *("top", "--bootstrap", brokers.address, "--plain"),
        *("--listen", f"127.0.0.1:{port}"),
    ).out
    reader.join()
    assert f"http://127.0.0.1:{port}/" in out
    assert found["-/ready"] == "ready\n"
    items = json.loads(found["api/v1/partitions"])["items"]
    assert {item["topic"] for item in items} == {f"orders-{n}" for n in range(4)}
    assert "local" in found[""]
    assert "tidemark_collect_pass_seconds_count" in found["metrics"]
    assert 'tidemark_partitions{kafka_cluster="local"} 4' in found["metrics"]


def test_a_cluster_that_does_not_answer_is_one_line() -> None:
    err = tidemark("top", "--bootstrap", f"127.0.0.1:{free_port()}", code=1).err
    assert err.startswith("tidemark: ") and err.count("\n") == 1


def test_a_recording_without_a_pass(tmp_path: Path) -> None:
    path = write(tmp_path / "other.jsonl", [b"{}"])
    assert "Line 1: Object missing" in tidemark("top", "--from", path, code=1).err
    (first, *_) = map(decode_batch, trace("unclean"))
    batch = msgspec.structs.replace(first, events=first.events[:-1])
    path = write(tmp_path / "cut.jsonl", [encode_batch(batch)])
    assert "holds no pass" in tidemark("top", "--from", path, code=2).err
    both = ("top", "--from", path, "--recording", "unclean-election")
    assert "both name a recording" in tidemark(*both, code=2).err


def test_the_recorder_ends_at_its_limit_and_continues_after_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"torn')
    recorder = Recorder(path, max_bytes=8)
    recorder.write([b"abc", b"def", b"ghi"])
    recorder.write([b"jkl"])
    recorder.close()
    assert path.read_bytes() == b'{"torn\nabc\ndef\n'
    assert recorder.ended is not None and "has reached its limit" in recorder.ended


def test_a_folder_that_is_not_there_cannot_be_recorded_to(
    brokers: FakeCluster, tmp_path: Path
) -> None:
    path = tmp_path / "none" / "events.jsonl"
    err = tidemark("top", "--bootstrap", brokers.address, "--record", str(path), code=2).err
    assert f"cannot write {path}" in err
