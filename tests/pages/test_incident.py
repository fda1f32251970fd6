"""The incident on a partition's page, and the command that shows the rest of it."""

from __future__ import annotations

import shlex

import msgspec
import pytest
from click.testing import CliRunner

from tests.export.make import NOW, alert
from tests.pages.make import healthy_view, site
from tests.pages.markup import Element, page
from tests.pages.test_markup import PAYMENTS
from tests.pages.test_recorded import OF_TRACE, replay
from tidemark.core.records import Alert, AlertState, View
from tidemark.verbs.timeline.command import timeline
from tidemark_exporters.pages.incident import incident


def section(root: Element) -> Element:
    (found,) = root.all("section", **{"aria-labelledby": "incident"})
    return found


def test_the_page_has_the_steps_and_the_command() -> None:
    found = section(page(site(), "/partition", **PAYMENTS))
    rows = [row.text for row in found.one("tbody").all("tr")]
    assert rows[0] == "2027-01-15 07:45:00 UTC 2, 3 ISR 1,2,3→2,3"
    assert "CRITICAL KafkaCommittedDataLoss: 22 committed records of payments-3" in rows[-3]
    assert "KafkaUnderReplicated" in rows[-2]
    assert rows[-1].endswith("1 leads in epoch 8; HW 1000300, log end 1000312")
    assert found.one("pre").text == (
        "tidemark timeline --cluster east --groups --since 2027-01-15T07:44:00Z -- payments-3"
    )
    assert "Not seen here: former leaders and offsets" in found.text


def test_a_window_in_which_nothing_was_seen_is_marked() -> None:
    blind = {"cluster": "east", "topic": "orders", "partition": 2}
    (row,) = section(page(site(), "/partition", **blind)).one("tbody").all("tr", class_="unseen")
    assert "not seen" in row.text and "4 passes in a row did not see the partition" in row.text


def test_without_an_incident_the_page_says_so() -> None:
    healthy = {"cluster": "east", "topic": "payments", "partition": 1}
    found = section(page(site(), "/partition", **healthy))
    assert "No alert and no change of the in-sync set is kept." in found.text
    loading = site()
    loading.history.complete = False
    assert "Still loading." in section(page(loading, "/partition", **healthy)).text


def test_a_real_unclean_election_is_shown_in_order() -> None:
    pages, _, _ = replay("unclean")
    rows = [row.text for row in section(page(pages, "/partition", **OF_TRACE)).all("tr")]
    story = (
        "KafkaBrokerDown (broker 2) fires",
        "ISR 1,2→1",
        "KafkaBrokerDown (broker 1) fires",
        "Unclean election: broker 2 leads trace-0 since epoch 2",
        # Its text now says that broker 1 came back, which was later.
        "CRITICAL KafkaCommittedDataLoss [5, 12) fires",
        "Broker 1 cut at least 7 records off its log",
        "resolved KafkaBrokerDown (broker 1) after 10.0 s, cleared",
        "the newest view: 2 leads in epoch 2; HW 9, log end 9",
    )
    places = [next(n for n, row in enumerate(rows) if text in row) for text in story]
    assert places == sorted(places)


def command_for(begin: float, end: float | None, topic: str = "t") -> list[str]:
    """The command for an alert from `begin` to `end` seconds ago."""
    state: AlertState = "firing" if end is None else "resolved"
    at = NOW if end is None else NOW - end
    found: Alert = alert("KafkaOffline", state, at=at, starts_at=NOW - begin, topic=topic)
    one: View = msgspec.structs.replace(healthy_view(topic, 0), kafka_cluster="east", at=NOW)
    text: str = incident(one, [found], NOW)["timeline_command"]
    return shlex.split(text)


@pytest.mark.parametrize(
    ("begin", "end", "options"),
    [
        (600, None, ["--since", "2027-01-15T07:49:00Z"]),
        (7200, 3600, ["--since", "2027-01-15T05:59:00Z", "--until", "2027-01-15T07:01:00Z"]),
    ],
)
def test_the_command_is_for_the_time_of_the_incident(
    begin: float, end: float | None, options: list[str]
) -> None:
    words = command_for(begin, end)
    assert words == ["tidemark", "timeline", "--cluster", "east", *options, "--", "t-0"]


@pytest.mark.parametrize(
    ("topic", "found"), [("-x", None), ("a b", "is no topic"), ("$(reboot)", "is no topic")]
)
def test_the_verb_takes_the_command_for_any_topic(topic: str, found: str | None) -> None:
    """`found`: what the verb says of a name that Kafka does not allow."""
    words = command_for(600, None, topic)
    assert words[-2:] == ["--", f"{topic}-0"]
    run = CliRunner().invoke(timeline, [*words[2:4], "--from", "/no/such/file", *words[4:]])
    assert "No such option" not in run.output
    # The options are known: else the first error is the missing recording.
    assert found in run.output if found is not None else run.exit_code != 2
