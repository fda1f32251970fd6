"""Which alerts a receiver can get: the severities that each has, and the detectors that run.

An alert never reaches a receiver that has none of its severities, and a detector in
`detect.disabled` has no alerts. A receiver that gets nothing is an error. Where only a part gets
nothing it may be intended: receivers share a list, or clusters are in another configuration. That
is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tidemark.core.errors import ConfigError
from tidemark.core.identity import alert_name
from tidemark.core.own_alerts import STALLED, TEST, WATCHDOG
from tidemark.settings.schema import Route, Settings

_CRITICAL: Final = frozenset({"critical"})
_WARNING: Final = frozenset({"warning"})
_INFO: Final = frozenset({"info"})
# Detector -> the severities of its alert, as docs/alerts.md explains them.
OF_DETECTORS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("COMMITTED_DATA_LOSS", "UNDER_MIN_ISR", "QUORUM_UNHEALTHY"), _CRITICAL),
    **dict.fromkeys(("UNCLEAN_ELECTION", "DIVERGENCE"), _CRITICAL | _WARNING),
    "OFFLINE": _CRITICAL | _INFO,
    **dict.fromkeys(
        (
            *("LOSS_RISK", "ZOMBIE_LEADER", "LINEAGE_ANOMALY", "FOLLOWER_UNREACHABLE"),
            *("LSO_STUCK", "REASSIGNMENT_STUCK", "ISR_CHURN", "BROKER_DOWN", "LOG_DIR_OFFLINE"),
            "COLLECTOR_CONFLICT",
        ),
        _WARNING,
    ),
    **dict.fromkeys(
        (
            *("ELR_ELECTION", "LEADER_ALONE", "FOLLOWER_LAG", "HW_STALLED", "HW_REGRESSION"),
            *("UNDER_REPLICATED", "AT_MIN_ISR", "COLLECTOR_GAP"),
        ),
        _WARNING | _INFO,
    ),
    **dict.fromkeys(
        (
            *("LOG_TRUNCATION", "EPOCH_BUMP_STORM", "ISR_CHANGE", "STALE_BROKER_VIEW"),
            *("CHECKPOINT_STALE", "PREFERRED_LEADER_IMBALANCE", "PURGATORY_GROWING"),
        ),
        _INFO,
    ),
}
# Alert -> its severities, and its detector.
SEVERITIES: Final = {
    **{alert_name(detector): found for detector, found in OF_DETECTORS.items()},
    STALLED: _WARNING,
    WATCHDOG: _INFO,
    TEST: _INFO,
}
_DETECTORS: Final = {alert_name(detector): detector for detector in OF_DETECTORS}


def check_alert_choice(settings: Settings) -> None:
    """Raises ConfigError for the first receiver that gets no alert."""
    for route in settings.notify.routes:
        # Its heartbeat comes whatever else it gets.
        if route.name == settings.notify.heartbeat_receiver:
            continue
        problem = _nothing(route.alerts, route, settings)
        if problem is not None:
            raise ConfigError(f"configuration: receiver `{route.name}` gets no alert: {problem}.")


def choice_warnings(settings: Settings) -> Iterator[str]:
    """One line for each expression of a receiver or a window that matches nothing here."""
    names = [cluster.name for cluster in settings.clusters]
    routes, windows = settings.notify.routes, settings.notify.maintenance
    for route in routes:
        for expression in route.alerts:
            problem = _nothing([expression], route, settings)
            if problem is not None:
                yield f"receiver `{route.name}`: alerts: `{expression}` adds nothing: {problem}"
    for kind, entries in (("receiver", routes), ("maintenance", windows)):
        for entry in entries:
            for expression in entry.clusters:
                if names and not any(re.fullmatch(expression, name) for name in names):
                    yield (
                        f"{kind} `{entry.name}`: clusters: `{expression}` matches no cluster of "
                        f"this configuration ({', '.join(names)}); this is right where others are "
                        "watched elsewhere"
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
    found = frozenset[str]().union(*(SEVERITIES[name] for name in enabled))
    if found.isdisjoint(route.severities):
        return (
            f"{', '.join(enabled[:5])} is never {' or '.join(route.severities)}; add "
            f"{' or '.join(sorted(found))} to severities, or leave them out"
        )
    return None
