"""Puts delivery together from the settings: transports first, so that what is configured wrongly is told before anything runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from tidemark.settings import Settings
from tidemark_exporters.notify.alertmanager import AlertmanagerTransport
from tidemark_exporters.notify.commits import BackgroundStore, OffsetStore
from tidemark_exporters.notify.delivery import Delivery, Maker
from tidemark_exporters.notify.offsets import KafkaOffsets
from tidemark_exporters.notify.receiver import WebhookTransport
from tidemark_exporters.notify.worker import Worker


class Transports(NamedTuple):
    """One for each webhook, and for each set of Alertmanagers one for each of its instances."""

    webhooks: list[WebhookTransport]
    alertmanagers: list[list[AlertmanagerTransport]]


def make_transports(settings: Settings, *, notify: bool = True) -> Transports:
    """All that the settings name, none without `notify`. Raises ConfigError for a file that cannot be read."""
    if not notify:
        return Transports([], [])
    return Transports(
        [WebhookTransport(receiver) for receiver in settings.notify.receivers],
        [
            [AlertmanagerTransport(manager, url) for url in manager.urls]
            for manager in settings.notify.alertmanagers
        ],
    )


def kafka_store(settings: Settings, ends: dict[int, int], name: str) -> KafkaOffsets:
    """Where the progress of receiver `name` is kept: in a consumer group of its own."""
    topics = settings.topics
    return KafkaOffsets(settings.kafka, topics.alerts, f"{topics.prefix}.notify.{name}", list(ends))


def make_delivery(
    settings: Settings,
    transports: Transports,
    ends: dict[int, int],
    make_store: Callable[[Settings, dict[int, int], str], OffsetStore] = kafka_store,
    clock: Callable[[], float] = time.time,
) -> Delivery:
    """`ends`: end offsets of the alerts topic now, by partition. Raises ClusterError when offsets cannot be read."""
    maker = Maker(settings, ends, clock)

    def store(name: str) -> OffsetStore:
        return BackgroundStore(make_store(settings, ends, name), name)

    workers: list[Worker] = []
    for index, webhook in enumerate(transports.webhooks):
        workers.append(maker.courier(index, webhook, store(settings.notify.receivers[index].name)))
    for index, instances in enumerate(transports.alertmanagers):
        workers.append(
            maker.pusher(index, instances, store(settings.notify.alertmanagers[index].name))
        )
    return Delivery(settings, workers, maker.starts if workers else dict(ends), clock)
