"""Checks beyond the types: the forms of texts, unique names, options that depend on others.

A mistake is an option's path, and what is wrong with the cure. No value is in it:
it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from tidemark.core.text import has_control_character
from tidemark.settings import forms
from tidemark.settings.alert_choice import choice_mistakes, routes_of
from tidemark.settings.conversion import near_word
from tidemark.settings.maintenance import read_schedule
from tidemark.settings.schema import Notify, Settings
from tidemark.settings.spark_entries import spark_mistakes

Mistake = tuple[str, str]
# Name of an option, or of a list of them -> the check of its text.
_FORMS: Final[Mapping[str, Callable[[str], str | None]]] = {
    **dict.fromkeys(("bootstrap_servers", "controllers"), forms.server_problem),
    "listen": forms.address_problem,
    **dict.fromkeys(("url", "urls", "watchdog_url"), forms.url_problem),
    **dict.fromkeys(("external_url", "dashboard_url"), forms.published_problem),
    **dict.fromkeys(("topics_allow", "topics", "brokers", "clusters"), forms.expression_problem),
    **dict.fromkeys(("detail_topics", "fast_high_watermark_topics"), forms.expression_problem),
    "topics_deny": forms.deny_problem,
    "alerts": forms.alerts_problem,
    "disabled": forms.detector_problem,
}
_NAMED_TWICE: Final = "its name is used twice; each needs a unique name"


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """All mistakes, the first ones first: later checks need what earlier ones found right."""
    texts = list(_texts(settings))
    for path, name, text in texts:
        # Options of a JVM may be folded.
        plain = re.sub(r"[\t\r\n]", "", text) if name == "spark" else text
        if has_control_character(plain):
            yield path, "it contains a control character, such as a line end or NUL; remove it"
    for path, name, text in texts:
        problem = _FORMS[name](text) if name in _FORMS else None
        if problem is not None:
            yield path, problem
    yield from _clusters(settings)
    topics = settings.topics
    if topics.min_in_sync_replicas > topics.replication_factor:
        yield (
            "topics.min_in_sync_replicas",
            "it must not exceed topics.replication_factor, or nothing can be published",
        )
    yield from _watchdog(settings)
    yield from _notify(settings.notify)
    yield from spark_mistakes(settings)
    yield from choice_mistakes(settings)


def _texts(value: Any, path: str = "", name: str = "") -> Iterator[tuple[str, str, str]]:
    """(path, option, text) of every text below a value; of a mapping, also the keys."""
    if isinstance(value, str):
        yield path, name, value
    elif isinstance(value, Struct):
        for option in value.__struct_fields__:
            inner = f"{path}.{option}" if path else option
            yield from _texts(getattr(value, option), inner, option)
    elif isinstance(value, dict):
        for key, inner in value.items():
            is_name = isinstance(key, str) and re.fullmatch("[a-z_]+", key) is not None
            yield f"{path}: a key", name, str(key)
            yield from _texts(inner, f"{path}.{key}" if is_name else path, name)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{number}]", name)


def _repeated(names: Mapping[str, object], problem: str) -> Iterator[Mistake]:
    """Of options by their paths: those whose value an earlier one has."""
    first = {name: path for path, name in reversed(list(names.items()))}
    for path, name in names.items():
        if first[name] != path:
            yield path, problem


def _clusters(settings: Settings) -> Iterator[Mistake]:
    clusters = {f"clusters[{number}]": each for number, each in enumerate(settings.clusters)}
    yield from _repeated({path: each.name for path, each in clusters.items()}, _NAMED_TWICE)
    for path, cluster in clusters.items():
        if cluster.shard >= cluster.shards:
            yield f"{path}.shard", "it must be below shards: 0 is the first"
        endpoints = {f"{path}.jmx[{number}]": each for number, each in enumerate(cluster.jmx)}
        brokers = {place: each.broker for place, each in endpoints.items()}
        yield from _repeated(brokers, "a broker has one endpoint; remove the others")
        for place, endpoint in endpoints.items():
            if not endpoint.url.isascii():
                yield f"{place}.url", forms.NO_URL


def _watchdog(settings: Settings) -> Iterator[Mistake]:
    collect = settings.collect
    given = [url for url in (collect.watchdog_url, collect.watchdog_url_file) if url is not None]
    if len(given) == 2:
        yield "collect.watchdog_url", "collect.watchdog_url_file is there too: give one of them"
    for name in ("watchdog_authorization_file", "watchdog_ca_file"):
        if not given and getattr(collect, name) is not None:
            cure = "give collect.watchdog_url or collect.watchdog_url_file too"
            yield f"collect.{name}", f"it has no effect without a watchdog: {cure}"


def _notify(notify: Notify) -> Iterator[Mistake]:
    named = {path: route.name for path, route in routes_of(notify)}
    yield from _repeated(named, _NAMED_TWICE)
    for number, receiver in enumerate(notify.receivers):
        if (receiver.url is None) == (receiver.url_file is None):
            yield f"notify.receivers[{number}]", "it needs exactly one of url and url_file"
    if notify.heartbeat_receiver not in (None, *named.values()):
        known = ", ".join(named.values()) or "none"
        near = near_word(notify.heartbeat_receiver or "", named.values())
        yield "notify.heartbeat_receiver", f"no such receiver; there are: {known}{near}"
    for number, window in enumerate(notify.maintenance):
        try:
            read_schedule(window)
        except ValueError as error:
            yield f"notify.maintenance[{number}]", str(error)
