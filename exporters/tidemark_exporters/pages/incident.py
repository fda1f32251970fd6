"""The incident on a partition's page, and the command that shows all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, Final

from tidemark.assess.incident.from_view import Incident, newest_incident
from tidemark.assess.incident.step import PAUSE_SECONDS
from tidemark.assess.losses import open_losses
from tidemark.core.records import Alert, View
from tidemark.core.text import rfc3339

# Before and after the incident, the command shows a minute.
MARGIN_SECONDS: Final = 60.0


def incident(view: View, alerts: Iterable[Alert], now: float) -> dict[str, Any]:
    """The variables of incident.html."""
    found = newest_incident(view, alerts, now)
    return {
        "incident": found,
        "timeline_command": None if found is None else timeline_command(view, found, now),
    }


def timeline_command(view: View, found: Incident, now: float) -> str:
    """`tidemark timeline …` for the time of the incident.

    Of a loss, with what the commits of consumer groups say of it.
    """
    options = ["--cluster", view.kafka_cluster, *(["--groups"] if open_losses(view) else [])]
    options += ["--since", _seconds(found.start - MARGIN_SECONDS)]
    if now - found.end > PAUSE_SECONDS:
        options += ["--until", _seconds(found.end + MARGIN_SECONDS)]
    # After `--`, a topic whose name begins with `-` is no option.
    return shlex.join(["tidemark", "timeline", *options, "--", f"{view.topic}-{view.partition}"])


def _seconds(at: float) -> str:
    """`2027-01-15T08:00:00Z`."""
    return f"{rfc3339(at)[:19]}Z"
