"""Where an alert leads to, below the address of `tidemark export`, and whose disks it names.

`records_held_by` in the evidence of an alert comes from topics and files, so it may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from tidemark.core.records import Alert, OpenAlert

# The runbooks on the pages of `tidemark export` at its default address.
RUNBOOK_URL: Final = "http://127.0.0.1:9754/docs/runbooks"
# Kafka's limit of a topic's name is 249; a longer value is of no use in a command.
MAX_CHARACTERS: Final = 255


def holder_entries(value: Any) -> list[dict[str, Any]]:
    """One of each replica: `broker`, and `state` (see `assess.records_held.Holder`)."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def held_by(value: Any) -> list[Any]:
    """The brokers that had them when they answered last, in its order."""
    return [each.get("broker") for each in holder_entries(value) if each.get("state") == "held"]


def runbook_path(alert: Alert | OpenAlert) -> str:
    """`docs/runbooks/kafkaoffline?cluster=…`: the page of its runbook, with the alert's values."""
    labels, evidence = alert.labels, alert.evidence
    values: dict[str, Any] = {
        "cluster": labels.get("kafka_cluster"),
        "topic": labels.get("topic"),
        "partition": labels.get("partition"),
        "broker": labels.get("broker"),
        "old_leader": broker_to_save(evidence),
        "holders": ",".join(map(str, brokers_to_save(evidence))),
    }
    match evidence.get("proven"):
        case [int(start), int(end)] if 0 <= start < end:
            values |= {"lost_from": start, "lost_to": end}
    path = f"docs/runbooks/{quote(labels.get('alertname', '').lower(), safe='')}"
    query = _query(values)
    return f"{path}?{query}" if query else path


def dashboard_path(labels: Mapping[str, Any]) -> str:
    """`d/tidemark-partition?var-…`, below the address of Grafana: the dashboard of the place."""
    uid = "partition" if labels.get("topic") else "brokers" if labels.get("broker") else "overview"
    names = ("kafka_cluster", "topic", "partition", "broker")
    return f"d/tidemark-{uid}?{_query({f'var-{name}': labels.get(name) for name in names})}"


def below(address: str, path: str) -> str:
    return f"{address.rstrip('/')}/{path}"


def _query(values: Mapping[str, Any]) -> str:
    """Without what is null, empty or longer than any name."""
    given = {
        name: value
        for name, value in values.items()
        if value is not None and 0 < len(str(value)) <= MAX_CHARACTERS
    }
    return urlencode(given, quote_via=quote, safe="", errors="replace")


def brokers_to_save(evidence: dict[str, Any]) -> list[int]:
    """`broker_to_save` first, then the others that have the records; not the leader."""
    held = (each for each in held_by(evidence.get("records_held_by")) if isinstance(each, int))
    found = dict.fromkeys([broker_to_save(evidence), *held])
    return [each for each in found if each not in {None, evidence.get("leader")} and each >= 0]


def broker_to_save(evidence: dict[str, Any]) -> int | None:
    """Whose disk has the records: of no leader that lacks them. None: not known."""
    before = evidence.get("leader_before", evidence.get("last_leader"))
    held = held_by(evidence.get("records_held_by"))
    broker = before if before in held or not held else held[0]
    is_known = isinstance(broker, int) and broker >= 0 and broker != evidence.get("leader")
    return broker if is_known else None
