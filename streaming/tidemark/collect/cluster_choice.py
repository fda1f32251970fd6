"""Which configured cluster the flags --bootstrap and --cluster choose."""

from __future__ import annotations

import re

import msgspec
from msgspec.structs import replace

from tidemark.core.errors import ConfigError
from tidemark.core.events import ClusterName
from tidemark.kafka.options import of_kafka
from tidemark.settings import Cluster, Settings, Topics, servers_of_flag


def select_clusters(settings: Settings, bootstrap: str | None, name: str | None) -> Settings:
    """The settings with the clusters that the flags select. Raises ConfigError if there is none."""
    if bootstrap is not None:
        servers = servers_of_flag(bootstrap)
        settings.clusters = [_cluster_at(servers, settings, name)]
        if settings.kafka.bootstrap_servers == ["127.0.0.1:9092"]:
            settings.kafka.bootstrap_servers = servers
    elif name is not None:
        found = [cluster for cluster in settings.clusters if cluster.name == name]
        if not found:
            raise no_such_cluster(name, settings)
        settings.clusters = found
    if not settings.clusters:
        raise ConfigError(
            "no cluster to watch: list clusters in the file of --config, "
            "or give --bootstrap HOST:PORT."
        )
    settings.clusters = [without_own_topics(each, settings.topics) for each in settings.clusters]
    return settings


def without_own_topics(cluster: Cluster, topics: Topics) -> Cluster:
    """The cluster as it is watched: Tidemark's own topics are denied, unless it asks for them.

    On every cluster: which one holds them cannot be told from addresses.
    """
    if cluster.watch_own_topics:
        return cluster
    own = [*map(re.escape, topics.names), f"{re.escape(topics.escrow)}.+"]
    return replace(cluster, topics_deny=[*cluster.topics_deny, *own])


def unwatched_line(cluster: Cluster, topics: Topics) -> str:
    """What is not seen on the cluster that holds Tidemark's own topics, and what to do."""
    return (
        f"not watched on {cluster.name}: Tidemark's own topics ({', '.join(topics.names)}); "
        "no alert reports their in-sync sets or a loss of their records: let another Tidemark "
        "watch them, or set watch_own_topics of the cluster"
    )


def _cluster_at(servers: list[str], settings: Settings, name: str | None) -> Cluster:
    """The configured cluster of that name, or the only one, at other servers; else a new one.

    A new one has the security options of `kafka`.
    """
    same = [cluster for cluster in settings.clusters if name in (None, cluster.name)]
    if len(same) == 1:
        return replace(same[0], bootstrap_servers=servers)
    return Cluster(
        name=_checked_name(name or "local"),
        bootstrap_servers=servers,
        client=of_kafka(settings.kafka.client),
    )


def choose_cluster(settings: Settings, name: str | None) -> Cluster:
    """The cluster of the log directories. Raises ConfigError where the choice is not clear."""
    found = [cluster for cluster in settings.clusters if name in (None, cluster.name)]
    if len(found) == 1:
        return without_own_topics(found[0], settings.topics)
    if name is None:
        raise ConfigError(
            "give --cluster NAME, the name of the cluster in the collectors' configuration."
        )
    if settings.clusters:
        raise no_such_cluster(name, settings)
    return without_own_topics(Cluster(name=_checked_name(name)), settings.topics)


def _checked_name(name: str) -> str:
    """Every reader refuses the events of a cluster with another name."""
    try:
        return msgspec.convert(name, ClusterName)
    except msgspec.ValidationError:
        raise ConfigError(
            f"--cluster `{name[:100]}` is no name: use up to 100 letters, digits, `.`, `_` and `-`."
        ) from None


def no_such_cluster(name: str, settings: Settings) -> ConfigError:
    """The error for a name that the configuration does not have."""
    known = ", ".join(cluster.name for cluster in settings.clusters) or "none"
    return ConfigError(f"no cluster is called `{name}`; the configuration has {known}.")
