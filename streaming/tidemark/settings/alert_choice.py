"""Which alerts a receiver can get: the severities that each has, and the detectors that run.

A receiver that gets nothing is a mistake. Where only a part gets nothing it may be intended:
receivers share a list, or clusters are in another configuration. That is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tidemark.core.identity import alert_name
from tidemark.core.own_alerts import STALLED, TEST, WATCHDOG
from tidemark.core.records import Severity
from tidemark.detect import DETECTORS
from tidemark.settings.schema import Notify, Route, Settings

_DETECTORS: Final = {alert_name(detector): detector for detector in DETECTORS}
# Alert -> its severities.
SEVERITIES: Final[Mapping[str, tuple[Severity, ...]]] = {
    **{alert: DETECTORS[detector].severities for alert, detector in _DETECTORS.items()},
    STALLED: ("warning",),
    WATCHDOG: ("info",),
    TEST: ("info",),
}


def routes_of(notify: Notify) -> Iterator[tuple[str, Route]]:
    """(option, receiver or set of Alertmanagers) of each."""
    for kind in ("receivers", "alertmanagers"):
        for number, route in enumerate(getattr(notify, kind)):
            yield f"notify.{kind}[{number}]", route


def choice_mistakes(settings: Settings) -> Iterator[tuple[str, str]]:
    """(option, problem and cure) of each receiver that gets no alert."""
    for path, route in routes_of(settings.notify):
        # Its heartbeat comes whatever else it gets.
        if route.name != settings.notify.heartbeat_receiver:
            problem = _nothing(route.alerts, route, settings)
            if problem is not None:
                yield path, f"it gets no alert: {problem}"


def choice_warnings(settings: Settings) -> Iterator[str]:
    """One line for each expression of a receiver or a window that matches nothing here."""
    of_clusters = {
        f"notify.maintenance[{number}].clusters": window.clusters
        for number, window in enumerate(settings.notify.maintenance)
    }
    for path, route in routes_of(settings.notify):
        of_clusters[f"{path}.clusters"] = route.clusters
        for number, expression in enumerate(route.alerts):
            problem = _nothing([expression], route, settings)
            if problem is not None:
                yield f"{path}.alerts[{number}] adds nothing: {problem}"
    names = [cluster.name for cluster in settings.clusters]
    for path, expressions in of_clusters.items():
        for number, expression in enumerate(expressions):
            if names and not any(re.fullmatch(expression, name) for name in names):
                yield (
                    f"{path}[{number}] matches no cluster of this configuration "
                    f"({', '.join(names)}); this is right where others are watched elsewhere"
                )


def _nothing(expressions: Sequence[str], route: Route, settings: Settings) -> str | None:
    """Why a receiver gets nothing by these expressions, and the cure; None: it gets something."""
    chosen = [
        name
        for name in SEVERITIES
        if any(re.fullmatch(expression, name) for expression in expressions)
    ]
    enabled = [name for name in chosen if _DETECTORS.get(name) not in settings.detect.disabled]
    if not enabled:
        detectors = ", ".join(sorted(_DETECTORS[name] for name in chosen)[:5])
        return f"its alerts are those of detectors in detect.disabled ({detectors}); enable one"
    found = {severity for name in enabled for severity in SEVERITIES[name]}
    if found.isdisjoint(route.severities):
        return (
            f"{', '.join(enabled[:5])} is never {' or '.join(route.severities)}; add "
            f"{' or '.join(sorted(found))} to severities, or leave them out"
        )
    return None
