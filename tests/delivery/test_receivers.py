"""The receivers in deploy/alertmanager, by a real Alertmanager; its endpoint refuses a wrong form.

The four services are not asked: tests/testdata/receivers.yaml has what the API of each takes.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from http.server import HTTPServer
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import requests
import yaml

from tests.conftest import ROOT, need
from tests.delivery.services import RealAlertmanager, wait_for
from tests.export.make import alert
from tests.http_server import Handler, serving
from tidemark.settings import Notify
from tidemark_exporters.notify.payload import alertmanager_alert

FOLDER = ROOT / "deploy" / "alertmanager"
SCHEMAS = yaml.safe_load((ROOT / "tests" / "testdata" / "receivers.yaml").read_text("utf-8"))
# Receiver -> the option with its key, what leads to the endpoint in its place, where it posts to,
# a word of a loss, where it posts the end, a word of that.
RECEIVERS = {
    "slack": ("api_url", "api_url: {}/slack", "/slack", "danger", "/slack", "Resolved: "),
    "pagerduty": (
        *("routing_key", "routing_key: k\n        url: {}/v2/enqueue"),
        *("/v2/enqueue", '"critical"', "/v2/enqueue", '"resolve"'),
    ),
    "opsgenie": (
        *("api_key", "api_key: k\n        api_url: {}/"),
        *("/v2/alerts", "P1", "/v2/alerts/ALIAS/close", "source"),
    ),
    "teams": ("webhook_url", "webhook_url: {}/teams", "/teams", "Adaptive", "/teams", "Resolved: "),
}
EXTERNAL = "https://tidemark.example.org"
LINE = "KafkaCommittedDataLoss east orders/0: A sentence."


class Endpoint(HTTPServer):
    """Takes posts of the form of their path, and refuses others."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.taken: list[tuple[str, str]] = []
        self.refused: list[str] = []

    def of(self, path: str, word: str) -> list[str]:
        return [text for at, text in self.taken if at == path and word in text]


class Taking(Handler):
    server: Endpoint

    def do_POST(self) -> None:
        document = json.loads(self.body())
        # An alert of Opsgenie has its alias in the path.
        path = re.sub(r"^/v2/alerts/[^/]+/", "/v2/alerts/ALIAS/", urlsplit(self.path).path)
        validator = jsonschema.Draft202012Validator(SCHEMAS.get(path, False))
        problems = [f"{path}: {each.message}" for each in validator.iter_errors(document)]
        self.server.refused += problems
        self.server.taken += [] if problems else [(path, json.dumps(document))]
        # What Slack answers, which Alertmanager 0.28 reads.
        self.reply(400 if problems else 202, b"ok")

    do_PUT = do_POST


def without_teams() -> bool:
    """Whether this machine's Alertmanager is too old to have a receiver for Teams."""
    command = [need("prometheus-alertmanager"), "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    version = re.findall(r"version (\d+)\.(\d+)", ran.stdout + ran.stderr)[0]
    return tuple(map(int, version)) < (0, 28)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with serving(Endpoint()) as made:
        yield made
    assert made.refused == []


@pytest.fixture(scope="module")
def manager(
    endpoint: Endpoint, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealAlertmanager]:
    """With every receiver; the time in which warnings are muted is now."""
    texts = [(FOLDER / name).read_text("utf-8") for name in ("receivers.yml", "teams.yml")]
    text = "\n---\n".join(texts[: 1 if without_teams() else 2])
    text = text.replace("saturday, sunday", "'sunday:saturday'")
    for option, instead, *_ in RECEIVERS.values():
        text = re.sub(rf"{option}_file: .*", instead.format(endpoint.url), text)
    first, *others = yaml.safe_load_all(text)
    receivers = [each for document in (first, *others) for each in document["receivers"]]
    times = {"group_wait": "0s", "group_interval": "1s", "group_by": ["..."]}
    to_all = [{"receiver": each["name"], "continue": True} for each in receivers]
    muted = [each for each in first["route"]["routes"] if "mute_time_intervals" in each]
    document = {
        **first,
        "templates": [str(FOLDER / "tidemark.tmpl")],
        "route": {"receiver": "slack", **times, "routes": [*muted, *to_all]},
        "receivers": receivers,
    }
    with RealAlertmanager(tmp_path_factory.mktemp("alertmanager"), "", document) as running:
        yield running


def post(manager: RealAlertmanager, state: str = "firing", **options: Any) -> None:
    made = alert(at=time.time(), broker=None, evidence={"proven": [5, 12]}, **options)
    notify, now = Notify(external_url=EXTERNAL), time.time()
    document = alertmanager_alert(made, state, now - 5, now, 120, notify)
    assert requests.post(f"{manager.url}/api/v2/alerts", json=[document], timeout=5).ok


@pytest.mark.parametrize("name", RECEIVERS)
def test_a_receiver_shows_the_first_line_the_range_and_the_links(
    manager: RealAlertmanager, endpoint: Endpoint, name: str
) -> None:
    if name == "teams" and without_teams():
        pytest.skip("this Alertmanager is older than 0.28, and has no receiver for Teams")
    _, _, path, word, end_path, end_word = RECEIVERS[name]
    post(manager, name="KafkaCommittedDataLoss", severity="critical")
    wait_for(lambda: endpoint.of(path, LINE), 20, name)
    shown = endpoint.of(path, LINE)[0]
    runbook = f"{EXTERNAL}/docs/runbooks/kafkacommitteddataloss?cluster=east"
    links = (runbook, f"{EXTERNAL}/partition?cluster=east")
    expected = (f"1 firing: {LINE}", "offsets 5-12 (", word, *links)
    assert [text for text in expected if text not in shown] == []
    post(manager, "resolved", name="KafkaCommittedDataLoss", severity="critical")
    wait_for(lambda: endpoint.of(end_path, end_word), 20, f"the end at {name}")


def test_silences_and_mute_times_hold_back_what_they_match_and_nothing_else(
    manager: RealAlertmanager, endpoint: Endpoint
) -> None:
    silence = ("--comment=disks", "--author=t", "--duration=1h", "kafka_cluster=west")
    command = [need("amtool"), f"--alertmanager.url={manager.url}", "silence", "add", *silence]
    subprocess.run(command, check=True, capture_output=True)
    post(manager, severity="critical", cluster="west", topic="silenced")
    post(manager, severity="warning", topic="muted")
    post(manager, severity="critical", topic="heard")
    wait_for(lambda: endpoint.of("/slack", "topic=heard"), 20, "the third alert")
    assert not [text for _, text in endpoint.taken if "silenced" in text or "muted" in text]
