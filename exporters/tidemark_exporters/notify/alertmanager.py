"""Posts to one instance of Alertmanager, API v2. A batch that it refuses is halved until the bad alert stands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tidemark.settings import Alertmanager
from tidemark_exporters.notify.receiver import Answer, Client, NotDeliveredError

PATH: Final = "/api/v2/alerts"
MAX_BATCH: Final = 500


class AlertmanagerTransport:
    """A session with one instance; used by one thread. Raises ConfigError where a file that is named cannot be read."""

    def __init__(self, manager: Alertmanager, url: str) -> None:
        self._url = url.rstrip("/").removesuffix(PATH) + PATH
        # host:port, for logs and metrics: the rest of an address may be a secret.
        self.name = f"{manager.name}/{urlsplit(url).netloc.rpartition('@')[2]}"
        self._client = Client(manager)

    def post(self, alerts: list[dict[str, Any]]) -> Answer:
        """Posts once. Raises NotDeliveredError."""
        return self._client.post(self._url, msgspec.json.encode(alerts), {})


Post = Callable[[list[dict[str, Any]]], Any]


def post_splitting(post: Post, alerts: list[dict[str, Any]]) -> dict[int, str]:
    """Posts all; returns the reason of each that was refused, by its index.

    The valid alerts of a refused batch may have been taken or not: they are posted again, which changes nothing. Raises
    NotDeliveredError when the failure is not of the content.
    """
    refused: dict[int, str] = {}
    waiting = [
        range(start, min(start + MAX_BATCH, len(alerts)))
        for start in range(0, len(alerts), MAX_BATCH)
    ]
    while waiting:
        part = waiting.pop(0)
        try:
            post([alerts[index] for index in part])
        except NotDeliveredError as error:
            if not error.of_content:
                raise
            if len(part) == 1:
                refused[part[0]] = f"{error}{': ' if error.text else ''}{error.text}"
            else:
                middle = len(part) // 2
                waiting[:0] = [part[:middle], part[middle:]]
    return refused
