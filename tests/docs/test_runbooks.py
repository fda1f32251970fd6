"""docs/runbooks.md is complete, and its commands accept their arguments."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.conftest import ROOT
from tests.docs.test_commands import assert_understood
from tests.docs.test_commands import commands as commands_of
from tests.docs.test_docs import anchors
from tests.docs.texts import missing_texts
from tests.verbs.recordings import alerts_of, trace
from tidemark.core.identity import alert_name, group_of
from tidemark.core.links import broker_to_save, runbook_path
from tidemark.core.records import Alert, view_key
from tidemark.detect import DETECTORS
from tidemark.detect.detector import Detector
from tidemark.settings import Topics
from tidemark_exporters.notify.derived_alerts import Heartbeat
from tidemark_exporters.pages import listing
from tidemark_exporters.pages.documentation import runbooks
from tidemark_exporters.pages.query import Query
from tidemark_exporters.pages.runbook_values import read_values

RUNBOOKS = ROOT / "docs" / "runbooks.md"
ALERTS = ROOT / "docs" / "alerts.md"
SCENARIOS = ROOT / "tests" / "testdata" / "detect"
PARTS = ["Do first", "Impact", "Diagnosis", "Mitigation", "When to escalate", "Meaning"]
TEXT = RUNBOOKS.read_text(encoding="utf-8")
# The options that both Kafka 3.x and 4.x take.
KAFKA = json.loads(
    (ROOT / "tests" / "testdata" / "kafka_commands.json").read_text(encoding="utf-8")
)["options"]
DETECTED = [alert_name(name) for name in DETECTORS]
# Broker 1 led and had the records; broker 2 leads now and lacks them.
UNCLEAN = alerts_of(trace("unclean"))


def sections() -> list[tuple[str, str]]:
    """Each heading of level 2 with the text up to the next heading of level 1 or 2."""
    return re.findall(
        r"^## (\w+)$\n(.*?)(?=^##? |\Z)",
        TEXT[TEXT.index("# Alerts about Kafka") :],
        flags=re.MULTILINE | re.DOTALL,
    )


def own_alerts() -> list[str]:
    """Those of the health rules, and those in the source of the collector and the exporter."""
    document = yaml.safe_load(
        (ROOT / "dashboards" / "prometheus" / "tidemark-health.yaml").read_text(encoding="utf-8")
    )
    rules = {rule["alert"] for group in document["groups"] for rule in group["rules"]}
    sources = [
        ROOT / "streaming/tidemark/core/own_alerts.py",
        *ROOT.glob("streaming/tidemark/collect/*.py"),
        *ROOT.glob("exporters/tidemark_exporters/**/*.py"),
    ]
    named = {
        name
        for path in sources
        for name in re.findall(r'"(Tidemark[A-Z][A-Za-z]+)"', path.read_text(encoding="utf-8"))
    }
    return sorted(rules | named)


def blocks(text: str) -> list[str]:
    """The fenced blocks of a text, also those within lists, without the fences."""
    found = re.findall(r"^( *)```sh\n(.*?)^\1```$", text, flags=re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in found]


def variables() -> dict[str, str]:
    """The variables that the first block sets."""
    return dict(re.findall(r"^export (\w+)=(\S+)", blocks(TEXT)[0], flags=re.MULTILINE))


def commands() -> list[list[str]]:
    """Every command of every block, as words, with the variables filled in."""
    filled = re.sub(r"\$(\w+)", lambda match: variables()[match[1]], "".join(blocks(TEXT)))
    return list(commands_of(filled))


def unique(program: str) -> list[str]:
    return sorted({shlex.join(words) for words in commands() if words[0].startswith(program)})


def test_each_alert_has_its_section_and_no_other_is_there() -> None:
    names = [name for name, _ in sections()]
    assert sorted(names) == sorted([*DETECTED, *own_alerts()])


@pytest.mark.parametrize(("alert", "text"), sections(), ids=[name for name, _ in sections()])
def test_each_section_has_its_parts_in_order_and_something_to_paste(alert: str, text: str) -> None:
    assert re.findall(r"^\*\*([\w ]+)\.\*\*", text, flags=re.MULTILINE) == PARTS, alert
    parts = re.split(r"^\*\*[\w ]+\.\*\* *", text, flags=re.MULTILINE)[1:]
    assert min(len(part.strip()) for part in parts) >= len("None."), "a part says nothing"
    assert blocks(parts[PARTS.index("Diagnosis")]), "nothing to paste in Diagnosis"
    first = [line for line in parts[0].splitlines() if line.strip() and "```" not in line]
    assert len(first) <= 5
    assert text.count("```") == 2 * len(blocks(text)), "a block that is not ```sh is not checked"


def test_every_variable_is_set_at_the_beginning_and_nothing_else_is_to_be_filled_in() -> None:
    assert not re.search(r"<[a-z]", "".join(blocks(TEXT)))
    assert set(re.findall(r"\$(\w+)", "".join(blocks(TEXT)))) <= variables().keys()


@pytest.mark.parametrize("command", unique("tidemark"))
def test_each_command_of_tidemark_is_understood(command: str) -> None:
    assert_understood(command)


@pytest.mark.parametrize("command", unique("kafka-"))
def test_each_command_of_kafka_has_options_that_it_takes(command: str) -> None:
    tool, *arguments = shlex.split(command)
    verb = next((word for word in arguments if f"{tool} {word}" in KAFKA), None)
    known = {*KAFKA[tool], *(KAFKA[f"{tool} {verb}"] if verb else [])}
    assert {word for word in arguments if word.startswith("--")} <= known
    if any(" " in name for name in KAFKA if name.startswith(tool)):
        assert verb is not None, "one of the tool's own verbs"
    assert "--bootstrap-server" in arguments or tool == "kafka-dump-log.sh"


def test_credentials_are_given_by_an_option_that_each_tool_takes() -> None:
    sentence = re.search(r"`--command-config client.properties` \((.*?)\)\.", TEXT, flags=re.DOTALL)
    assert sentence is not None
    options = {tool: option for option, tool in re.findall(r"`(--\S+)` for\s+`(\S+)`", sentence[1])}
    asking = {words[0] for words in commands() if words[0].startswith("kafka-")} - {
        "kafka-dump-log.sh"
    }
    assert options.keys() <= asking
    for tool in asking:
        assert options.get(tool, "--command-config") in KAFKA[tool], tool


def test_the_removal_of_a_cluster_keeps_the_views_of_others(tmp_path: Path) -> None:
    """The commands of the page filter the keys and write the tombstones, without Kafka."""
    (listed,) = [
        words for words in commands() if words[:2] == ["grep", "-E"] and "(/|$)" in words[2]
    ]
    (written,) = [words for words in commands() if words[0] == "sed"]
    of_orders = [
        view_key("orders"),
        view_key("orders", broker=3),
        view_key("orders", "payments", 0),
        view_key("orders", "orders-2", 11),
    ]
    others = [
        view_key("orders-2"),
        view_key("orders-2", "orders", 0),
        view_key("my.orders", "orders", 0),
        view_key("east", "orders", 1),
    ]
    found = subprocess.run(
        listed,
        input="\n".join([*others, *of_orders, ""]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert found.splitlines() == of_orders
    views = tmp_path / "views.txt"
    views.write_text(found)
    made = subprocess.run(
        [*written[:2], str(views)], capture_output=True, text=True, check=True
    ).stdout
    assert made == "".join(f"{key}\tNULL\n" for key in of_orders)
    topics = {
        words[words.index("--topic") + 1]
        for words in commands()
        if words[0].startswith("kafka-console") and "partition-views" in " ".join(words)
    }
    assert topics == {Topics().partition_views}


def test_lines_about_partition_1_are_not_those_about_partition_10() -> None:
    wanted = "{TOPIC}-{PARTITION}".format(**variables())
    looked = [words for words in commands() if words[0] == "grep" and words[-1] == wanted]
    assert looked
    for words in looked:
        run = subprocess.run(
            words,
            input=f"[Partition {wanted} broker=1]\n{wanted}1 with\n",
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout == f"[Partition {wanted} broker=1]\n"


def test_both_the_open_and_the_past_alerts_are_saved() -> None:
    addresses = [
        urlsplit(word)
        for words in commands()
        if words[0] == "curl"
        for word in words
        if "/api/v1/" in word
    ]
    assert {parse_qs(each.query).get("status", ["open"])[0] for each in addresses} == {
        "open",
        "past",
    }
    for each in addresses:
        Query(each.query, listing.ALERTS)


def test_the_place_of_a_partitions_events_is_computed_as_the_collector_does() -> None:
    (words,) = [words for words in commands() if words[0] == "python3"]
    printed = subprocess.run(
        [sys.executable, *words[1:]], capture_output=True, text=True, check=True
    ).stdout
    set_to = variables()
    assert int(printed) == group_of(
        set_to["CLUSTER"], set_to["TOPIC"], int(set_to["PARTITION"]), Topics().partitions
    )


def test_the_command_that_loses_records_occurs_once_and_after_its_warning() -> None:
    """The one command that loses committed records comes after its warning."""
    unclean = "--election-type unclean"
    assert sum(block.count(unclean) for block in blocks(TEXT)) == 1
    offline = dict(sections())["KafkaOffline"]
    assert offline.index("what would be lost") < offline.index(unclean)
    assert not re.search(r"(?<!\w)rm -|kafka-storage|enable=true", "".join(blocks(TEXT)))


@pytest.mark.parametrize("alert", [*DETECTED, *own_alerts()])
def test_each_alert_has_a_page_and_the_former_anchor(alert: str) -> None:
    assert f"runbooks/{alert.lower()}" in runbooks()
    assert alert.lower() in anchors(RUNBOOKS)


def walked(alert: Alert) -> list[str]:
    """The commands of an alert's runbook and of the sections that it leads to, filled in.

    The values are those that a notification shows: labels and annotations.
    """
    of_alert = {
        "CLUSTER": alert.labels["kafka_cluster"],
        "TOPIC": alert.labels["topic"],
        "PARTITION": alert.labels["partition"],
        "BROKER": str(alert.evidence["leader"]),
        "OLD_LEADER": str(broker_to_save(alert.evidence)),
    }
    parts = re.split(r"^##? (.+)$", TEXT, flags=re.MULTILINE)
    by_anchor = {
        name.lower().replace(" ", "-"): text
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    section = by_anchor[alert.labels["alertname"].lower()]
    texts = [section, *(by_anchor[anchor] for anchor in re.findall(r"\]\(#([\w-]+)\)", section))]
    lines = "".join(block for text in texts for block in blocks(text)).splitlines()
    values = variables() | of_alert
    return [re.sub(r"\$(\w+)", lambda match: values[match[1]], line) for line in lines]


@pytest.mark.parametrize("name", ["KafkaUncleanElection", "KafkaCommittedDataLoss"])
def test_the_log_that_is_saved_and_read_is_the_old_leaders(name: str) -> None:
    (alert,) = [a for a in UNCLEAN if (a.labels["alertname"], a.state) == (name, "firing")]
    assert (alert.labels["severity"], alert.labels.get("broker")) == ("critical", None)
    assert (alert.evidence["leader"], alert.evidence["leader_before"]) == (2, 1)
    named = [(line, re.findall(r"/broker-(\d+)", line)) for line in walked(alert)]
    assert {broker for _, brokers in named for broker in brokers} == {"1"}
    for program in ("mkdir", "cp", "tidemark salvage", "kafka-dump-log.sh"):
        assert any(program in line and brokers for line, brokers in named), program


def test_no_command_saves_the_log_of_the_broker_in_the_label() -> None:
    """Which is the survivor, of an election or a loss; and every section says whose log it is."""
    assert not re.search(r"(SAFE|LOGDIR)\S*\$BROKER", "".join(blocks(TEXT)))
    for name in ("KafkaUncleanElection", "KafkaCommittedDataLoss"):
        assert "`$OLD_LEADER`" in dict(sections())[name]
        assert "`leader_before`" in dict(sections())[name]


def test_alerts_that_fire_lead_to_their_pages() -> None:
    """Those of a recorded unclean election, and the heartbeat, which the exporter raises."""
    assert "KafkaCommittedDataLoss" in {alert.labels["alertname"] for alert in UNCLEAN}
    for alert in [*UNCLEAN, Heartbeat(60.0, 0.0).alert(1.0)]:
        path, _, query = runbook_path(alert).partition("?")
        assert path.removeprefix("docs/") in runbooks()
        assert dict(read_values(query)).get("cluster") == alert.labels.get("kafka_cluster")


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=lambda detector: detector.id)
def test_each_detector_has_its_texts(detector: Detector) -> None:
    scenarios = (path.read_text(encoding="utf-8") for path in SCENARIOS.glob("*.txt"))
    assert missing_texts(detector, scenarios, ALERTS.read_text(encoding="utf-8"), TEXT) == []


def test_the_table_has_tidemarks_own_alerts_and_no_other() -> None:
    text = ALERTS.read_text(encoding="utf-8")
    rows = re.findall(
        r'^\| <a id="(\w+)"></a>\[(Tidemark\w+)\]\(runbooks\.md#\1\) \| ', text, flags=re.MULTILINE
    )
    assert sorted(name for _, name in rows) == own_alerts()
    assert all(name.lower() == anchor for anchor, name in rows)
