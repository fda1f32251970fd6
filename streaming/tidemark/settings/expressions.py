"""Regular expressions: each is valid, and one for alerts matches an alert that exists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.core.identity import alert_name
from tidemark.core.own_alerts import DELIVERED
from tidemark.detect import DETECTORS
from tidemark.settings.conversion import with_stop
from tidemark.settings.schema import Notify, Settings

# All alerts that receivers can get.
ALERTS: Final = (*map(alert_name, DETECTORS), *DELIVERED)


def check_expressions(settings: Settings) -> None:
    """Raises ConfigError for the first expression that is wrong, with its option."""
    for option, expressions in _expressions(settings):
        for expression in expressions:
            _check_syntax(option, expression)
    _check_routes(settings.notify)


def _check_routes(notify: Notify) -> None:
    for kind, entries in (("receiver", notify.routes), ("maintenance", notify.maintenance)):
        for entry in entries:
            for expression in entry.alerts:
                if not any(re.fullmatch(expression, name) for name in ALERTS):
                    problem = with_stop(
                        f"{kind} `{entry.name}`: alerts: `{expression}` matches no alert that "
                        f"receivers get{_near_alert(expression)}"
                    )
                    raise ConfigError(f"configuration: {problem} docs/alerts.md lists the alerts.")
    for route in notify.routes:
        for name in ("severities", "clusters", "alerts"):
            if not getattr(route, name):
                raise ConfigError(
                    f"configuration: receiver `{route.name}`: {name} is empty, so that it gets "
                    "no alert; leave it out to match all."
                )


def _near_alert(expression: str) -> str:
    """An alert is also found by its detector's id, and without regard to case."""
    word = expression.replace("_", "").lower()
    names = {name.lower(): name for name in ALERTS}
    # Below it the nearest of many names is often another alert.
    cutoff = 0.8
    close = get_close_matches(word, names, n=1, cutoff=cutoff) or get_close_matches(
        f"kafka{word}", names, n=1, cutoff=cutoff
    )
    return f"; did you mean `{names[close[0]]}`?" if close else ""


def _check_syntax(option: str, expression: str) -> None:
    try:
        re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        hint = "; write .* for any text" if expression.startswith("*") else ""
        # Without the names of groups, which are parts of the expression.
        reason = re.sub(r" '.*'", "", str(error))
        raise ConfigError(
            f"configuration: {option}: `{expression}` is not a regular expression: {reason}{hint}."
        ) from None


def _expressions(settings: Settings) -> Iterator[tuple[str, Sequence[str]]]:
    for cluster in settings.clusters:
        yield f"cluster `{cluster.name}`: topics_allow", cluster.topics_allow
        yield f"cluster `{cluster.name}`: topics_deny", cluster.topics_deny
    for route in settings.notify.routes:
        yield f"receiver `{route.name}`: clusters", route.clusters
        yield f"receiver `{route.name}`: alerts", route.alerts
    for window in settings.notify.maintenance:
        for name in ("clusters", "topics", "brokers", "alerts"):
            yield f"maintenance `{window.name}`: {name}", getattr(window, name)
    for override in settings.detect.overrides:
        yield "detect.overrides: topics", [override.topics]
    yield "collect.fast_high_watermark_topics", settings.collect.fast_high_watermark_topics
    yield "export.detail_topics", settings.export.detail_topics
