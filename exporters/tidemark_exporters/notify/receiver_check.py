"""`tidemark check-config --test-receiver`: one test notification, and what was answered."""

from __future__ import annotations

import time
from typing import Final

import msgspec

from tidemark.core.own_alerts import TEST, own_alert
from tidemark.settings import Receiver, Route, Settings
from tidemark.web.webhook_client import HttpClient, NotDeliveredError, make_clients
from tidemark_exporters.notify.groups import Group
from tidemark_exporters.notify.payload import alertmanager_alert, webhook_body

# At Alertmanager it ends by itself after this long.
ENDS_AFTER_SECONDS: Final = 60.0
# The cure for a status.
CURES: Final = {
    400: "It does not understand the payload: a webhook must take Alertmanager's version 4, "
    "an Alertmanager its API v2.",
    401: "It does not know who posts: check authorization_file, or the secret in the address.",
    403: "It does not allow the post: check authorization_file, secret_file "
    "and its list of senders.",
    404: "Check the path of the address.",
    405: "It takes no POST there: check the path of the address.",
    413: "It takes no such large posts.",
    429: "It asks for fewer posts; delivery waits and tries again.",
}


def send_test_notification(settings: Settings, name: str) -> tuple[bool, list[str]]:
    """Whether all addresses of receiver `name` took it, and a line for each. Raises ConfigError."""
    route = next(each for each in settings.notify.routes if each.name == name)
    lines = [_post(settings, route, client) for client in make_clients(route)]
    return all(line.startswith("ok: ") for line in lines), lines


def _post(settings: Settings, route: Route, client: HttpClient) -> str:
    now, notify = time.time(), settings.notify
    alert = own_alert(
        TEST,
        "info",
        "A test notification of Tidemark.",
        "`tidemark check-config --test-receiver` sent it. Nothing is wrong.",
        starts_at=now,
        at=now,
    )
    request: tuple[bytes, str | None]
    if isinstance(route, Receiver):
        request = webhook_body([alert], Group({}), route, notify)
    else:
        posted = alertmanager_alert(alert, "firing", now, now, ENDS_AFTER_SECONDS, notify)
        request = msgspec.json.encode([posted]), None
    kind = "receiver" if isinstance(route, Receiver) else "Alertmanager"
    place, began = f"{kind} `{route.name}` at {client.host}", time.monotonic()
    try:
        answer = client.post(*request)
    except NotDeliveredError as error:
        return f"{place} did not take the test notification: {_reason(error, route)}"
    took = round((time.monotonic() - began) * 1000)
    text = _quote(answer.text)
    return f"ok: {place} took the test notification: HTTP {answer.status} after {took} ms{text}"


def _reason(error: NotDeliveredError, route: Route) -> str:
    if error.status is None:
        return f"{error} (time-out {route.timeout_seconds:g} s)."
    cure = CURES.get(error.status, "Delivery would try again.")
    return f"HTTP {error.status}{_quote(error.text)}. {cure}"


def _quote(text: str) -> str:
    return f", saying: {text}" if text else ""
