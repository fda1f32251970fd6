"""Shell completion of names: clusters from the configuration, topics and brokers from a cluster.

A shell waits for the answer: without one within two seconds, and for every error, there is none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from tidemark.settings import Connection, Settings, load_settings

WAIT_SECONDS: Final = 2.0
MAX_NAMES: Final = 1_000


def complete_clusters(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The configured clusters."""
    return _answer(lambda: [cluster.name for cluster in _settings(context).clusters], incomplete)


def complete_receivers(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The configured receivers."""
    return _answer(lambda: [route.name for route in _settings(context).notify.routes], incomplete)


def complete_topics(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The topics of the cluster that the flags name."""
    return _answer(lambda: _ask(context, lambda admin: sorted(admin.list_topics())), incomplete)


def complete_brokers(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The brokers of the cluster that the flags name, without those that are given already."""
    given = {str(broker) for broker in context.params.get("brokers") or ()}

    def brokers(admin: Any) -> list[str]:
        found = {str(broker["node_id"]) for broker in admin.describe_cluster()["brokers"]}
        return sorted(found - given, key=int)

    return _answer(lambda: _ask(context, brokers), incomplete)


def _settings(context: click.Context) -> Settings:
    from tidemark.kafka.command_config import read_command_config

    path = context.params.get("config") or os.environ.get("TIDEMARK_CONFIG")
    settings = load_settings(None if path is None else Path(path))
    properties = context.params.get("command_config")
    if properties is not None:
        client = read_command_config(Path(properties))
        settings.kafka.client = client
        for cluster in settings.clusters:
            cluster.client = client
    return settings


def _ask(context: click.Context, question: Callable[[Any], Iterable[str]]) -> Iterable[str]:
    """The answer of the cluster: of `--bootstrap`, of `--cluster`, else of the only one."""
    from tidemark.kafka.client import make_admin

    settings, name = _settings(context), context.params.get("name")
    servers = context.params.get("bootstrap")
    same = [cluster for cluster in settings.clusters if name in (None, cluster.name)]
    connection: Connection = same[0] if len(same) == 1 else settings.kafka
    if servers:
        connection = Connection(bootstrap_servers=servers.split(","), client=connection.client)
    elif len(same) != 1:
        return []
    admin = make_admin(connection)
    try:
        return question(admin)
    finally:
        admin.close()


def _answer(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """The names that begin so; none where they are not known in time."""
    found: list[str] = []

    def fill() -> None:
        try:
            found.extend(name for name in names() if name.startswith(incomplete))
        except Exception:
            # An error has no place on a line that is being typed; the verb reports it.
            found.clear()

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS)
    return found[:MAX_NAMES] if not thread.is_alive() else []
