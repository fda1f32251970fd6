"""Which receiver gets which alert."""

from __future__ import annotations

import re

from tidemark.core.records import Alert
from tidemark.settings import Route


def wants(receiver: Route, alert: Alert) -> bool:
    """Whether severity, cluster and alert name all fit (regular expressions, matched whole). The default takes all."""
    labels = alert.labels
    return (
        labels.get("severity") in receiver.severities
        and _matches(receiver.clusters, labels.get("kafka_cluster", ""))
        and _matches(receiver.alerts, labels.get("alertname", ""))
    )


def _matches(expressions: list[str], text: str) -> bool:
    return any(re.fullmatch(expression, text) for expression in expressions)
