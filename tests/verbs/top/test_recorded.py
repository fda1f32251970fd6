"""A recording gone through in any order, in the terminal's snapshots and on the served page."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.verbs.top.shown import pressed, screen
from tidemark.core.errors import TidemarkError
from tidemark.detect.default_thresholds import Detection
from tidemark.settings import load_settings
from tidemark.verbs.top.recorded import SHIPPED, RecordedCluster
from tidemark.verbs.top.site import RecordedSite
from tidemark.web.exchange import Request, Response

TESTDATA = ROOT / "tests" / "testdata"
FILES = sorted(
    path for folder in ("cases", "traces") for path in (TESTDATA / folder).rglob("*.jsonl*")
)
# Of each recording that ships, the alert that it is for.
SHOWN = {"unclean-election": "KafkaCommittedDataLoss", "slow-leader": "KafkaHwStalled"}
MAX_BYTES = 64 * 1024


def opened(path: Path) -> RecordedCluster:
    return RecordedCluster(str(path), Detection(), None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_recording_opens_or_is_refused_with_the_reason(path: Path) -> None:
    if path.parent.name == "traces":
        with pytest.raises(TidemarkError, match="Line 1: Object missing required field `v`"):
            opened(path)
        return
    recorded = opened(path)
    assert recorded.number == len(recorded.ended) == recorded.snapshot.positions
    assert recorded.ended == sorted(recorded.ended)


@pytest.mark.parametrize("name", SHOWN)
def test_a_pass_is_the_same_whichever_way_it_is_reached(name: str) -> None:
    there, back = opened(SHIPPED[name]), opened(SHIPPED[name])
    there.go_to(1)
    assert there.snapshot.alerts == []
    for number in (3, len(there.ended) // 2, len(there.ended) - 1):
        there.go_to(number)
        back.go_to(len(back.ended))
        back.go_to(number)
        assert there.snapshot == back.snapshot
        assert there.snapshot.at == there.ended[number - 1]
    there.step(10)
    assert there.number == len(there.ended)
    there.step(-1_000)
    assert there.number == 1


@pytest.mark.parametrize("name", SHOWN)
def test_what_ships_is_small_and_has_the_alert_that_it_is_for(name: str) -> None:
    assert SHIPPED.keys() == SHOWN.keys()
    assert SHIPPED[name].stat().st_size < MAX_BYTES
    recorded = opened(SHIPPED[name])
    (moment,) = [each for each in recorded.moments if each.alert == SHOWN[name]]
    for number, is_open in ((moment.number - 1, False), (moment.number, True)):
        recorded.go_to(number)
        names = {alert.labels["alertname"] for alert in recorded.snapshot.alerts}
        assert (SHOWN[name] in names) is is_open


def test_the_screen_says_where_it_is_and_how_to_step() -> None:
    recorded = opened(SHIPPED["unclean-election"])
    recorded.go_to(7)
    shown = screen(recorded.snapshot, pressed(recorded.snapshot))
    assert f"7/{len(recorded.ended)}  " in shown[0]
    assert ", . < > step" in shown[-1]


class Served:
    def __init__(self, name: str) -> None:
        self.recorded = opened(SHIPPED[name])
        self.site = RecordedSite(load_settings(None, {}), self.recorded, "127.0.0.1:0")

    def get(self, path: str, query: str = "") -> Response:
        return self.site._answer(Request("GET", path, query, {}))

    def text(self, path: str, query: str = "") -> str:
        answer = self.get(path, query)
        assert answer.status == HTTPStatus.OK
        return b"".join([*answer.shared, answer.body]).decode()


@pytest.fixture
def served() -> Iterator[Served]:
    found = Served("unclean-election")
    yield found
    found.site.close()


def test_the_page_the_api_and_the_metrics_follow_the_pass_of_the_address(served: Served) -> None:
    (moment,) = [m for m in served.recorded.moments if m.alert == "KafkaCommittedDataLoss"]
    sample = f'alertname="{moment.alert}",severity="critical"}} 1\n'
    partition = f"cluster={served.recorded.cluster}&topic=orders&partition=0"
    for number, is_lost in ((moment.number, True), (moment.number - 1, False)) * 2:
        below = f"/pass/{number}/"
        items = json.loads(served.text(f"{below}api/v1/alerts"))["items"]
        names = {item["labels"]["alertname"] for item in items}
        assert (moment.alert in names) is is_lost
        for path in (f"{below}metrics", "/metrics"):
            assert (sample in served.text(path)) is is_lost
        page = served.text(f"{below}partition", partition)
        assert ("committed records are proven lost" in page) is is_lost
        assert f"../{number + 1}/partition?" in page
        assert f"../{moment.number}/partition?" in page
        assert "is stale" not in page


def test_an_address_without_a_pass_leads_to_the_one_shown_last(served: Served) -> None:
    served.text("/pass/5/")
    for path, query, expected in (
        ("/", "", "pass/5/"),
        ("/partition", "topic=a%20b\r\nX: y", "pass/5/partition?topic=a%20b%0D%0AX%3A%20y"),
        ("/docs/runbooks", "", "../pass/5/docs/runbooks"),
        ("//elsewhere.example.org/", "", "../../pass/5//elsewhere.example.org/"),
    ):
        answer = served.get(path, query)
        assert answer.status == HTTPStatus.FOUND
        assert dict(answer.headers)["Location"] == expected
    for number in (0, len(served.recorded.ended) + 1):
        assert served.get(f"/pass/{number}/").status == HTTPStatus.NOT_FOUND
    assert served.get("/static/recording.js").status == HTTPStatus.OK


def test_of_a_pipe_only_the_end_is_known() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "wb") as file:
        file.write(gzip.decompress(SHIPPED["unclean-election"].read_bytes()))
    recorded = opened(Path(f"/dev/fd/{read}"))
    os.close(read)
    recorded.step(-1)
    assert (recorded.number, recorded.snapshot.positions, recorded.moments) == (1, 1, [])
