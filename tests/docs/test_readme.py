"""What the README shows of a recording is what the recording shows."""

from __future__ import annotations

import os
import re
import textwrap
from contextlib import closing

from tests.conftest import ROOT
from tidemark.detect.default_thresholds import Detection
from tidemark.settings import load_settings
from tidemark.verbs.top.recorded import SHIPPED, RecordedCluster
from tidemark.verbs.top.site import RecordedSite
from tidemark.web.exchange import Request

README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=<!-- recording -->\n).*?(?=<!-- end -->)", re.DOTALL)
SAMPLES = (
    'tidemark_alert_open{.*alertname="KafkaCommittedDataLoss"',
    "tidemark_partition_leader{",
    "tidemark_partition_leader_epoch{",
    "tidemark_partition_high_watermark{",
    "tidemark_partition_uncommitted_records{",
    "tidemark_partition_in_sync_replicas{",
    'tidemark_replica_log_end_offset{.*broker="1"',
    'tidemark_replica_high_watermark{.*broker="1"',
    'tidemark_replica_lag_records{.*broker="1"',
    'tidemark_replica_up{.*broker="1"',
)
LOSS = "KafkaCommittedDataLoss"


def shown() -> str:
    """Ten lines of /metrics at the end of the recording, and the alert of the loss as it fires."""
    recorded = RecordedCluster(str(SHIPPED["unclean-election"]), Detection(), None)
    with closing(RecordedSite(load_settings(None, {}), recorded, "127.0.0.1:0")) as site:
        answer = site._answer(Request("GET", "/metrics", "", {}))
    text = b"".join([*answer.shared, answer.body]).decode()
    lines = [next(line for line in text.splitlines() if re.match(each, line)) for each in SAMPLES]
    for number in range(1, len(recorded.ended) + 1):
        recorded.go_to(number)
        found = [a for a in recorded.snapshot.alerts if a.labels["alertname"] == LOSS]
        if found:
            break
    (alert,) = found
    told = textwrap.wrap(
        f"{alert.labels['severity']} {LOSS}: {alert.annotations['description']}", 100
    )
    between = ["```", "", "and this alert goes to a webhook or an Alertmanager:", "", "```text"]
    return "\n".join(["", "```text", *lines, *between, *told, "```", "", ""])


def test_the_readme_shows_the_recording() -> None:
    text = README.read_text(encoding="utf-8")
    if os.environ.get("REWRITE"):
        text = BLOCK.sub(lambda _: shown(), text)
        README.write_text(text, encoding="utf-8")
    assert BLOCK.search(text)[0] == shown(), "run with REWRITE=1"  # type: ignore[index]
