"""The words of scenario texts: lists, pairs, brokers."""

from __future__ import annotations

import json
from typing import Any

from tidemark.core.events import BrokerAnswer, BrokerState

# When scenarios begin, in Unix seconds.
ORIGIN = 1_700_000_000.0


def numbers(text: str) -> list[int]:
    """`1,2,3`; `none` is an empty list."""
    return [] if text in ("", "none") else [int(part) for part in text.split(",")]


def optional(text: str) -> int | None:
    """`7`, or `none`."""
    return None if text == "none" else int(text)


def pairs(text: str) -> dict[int, Any]:
    """`1:100,2:90` or `3:timed_out`; `none` is empty."""
    if text in ("", "none"):
        return {}
    items = (part.split(":") for part in text.split(","))
    return {int(key): int(value) if value.lstrip("-").isdigit() else value for key, value in items}


def broker_answer(
    broker: int, outcome: str, preferred: str | None, in_sync: int | None
) -> BrokerAnswer:
    """How a broker answered; `preferred` is "10/3": the preferred leader of 10 partitions, leading 3 of them."""
    owns, _, leads = (preferred or "").partition("/")
    return BrokerAnswer(
        broker=broker,
        outcome=outcome,
        preferred=int(owns) if owns else None,
        preferred_led=int(leads) if leads else None,
        in_sync=in_sync,
    )


def broker_event(words: list[str], at: float) -> BrokerState:
    """`2 fenced lag=12000 voter`: see world.py."""
    given = dict(word.split("=", 1) for word in words[1:] if "=" in word)
    flags = set(words[1:])

    def either(yes: str, no: str) -> bool | None:
        return True if yes in flags else (False if no in flags else None)

    def number(name: str) -> int | None:
        return int(given[name]) if name in given else None

    return BrokerState(
        broker=int(words[0]),
        observed_at=at,
        incarnation=number("incarnation"),
        fenced=either("fenced", "unfenced"),
        in_controlled_shutdown=either("shutdown", "up"),
        is_voter=either("voter", "observer"),
        metadata_lag_ms=float(given["lag"]) if "lag" in given else None,
        offline_log_dirs=number("offline_dirs"),
        produce_purgatory=number("produce"),
        fetch_purgatory=number("fetch"),
    )


def spoken(value: Any) -> str:
    """A value of an alert's evidence as JSON, its times as seconds since the scenario began."""
    if isinstance(value, float) and value >= ORIGIN:
        return f"{value - ORIGIN:.1f} s"
    if isinstance(value, list | tuple):
        return f"[{', '.join(spoken(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {spoken(item)}' for key, item in value.items())}}}"
    return json.dumps(value)
