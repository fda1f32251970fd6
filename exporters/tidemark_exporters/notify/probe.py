"""`tidemark check-config --test-receiver`: one test notification, and what was answered, in plain words."""

from __future__ import annotations

import time
from typing import Any, Final
from urllib.parse import urlsplit

from tidemark.core.errors import ConfigError
from tidemark.core.identity import fingerprint
from tidemark.core.records import Alert
from tidemark.settings import Alertmanager, Receiver, Settings
from tidemark_exporters.notify.alertmanager import AlertmanagerTransport
from tidemark_exporters.notify.gather import Batch, Entry, Group
from tidemark_exporters.notify.payload import postable, render
from tidemark_exporters.notify.receiver import Answer, NotDeliveredError, WebhookTransport, read

TEST: Final = "TidemarkTest"
# At Alertmanager it ends by itself after this long.
ENDS_AFTER_SECONDS: Final = 60.0
# What to do about an answer.
CURES: Final = {
    400: "It does not understand the payload: a webhook must take Alertmanager's version 4, an Alertmanager its API v2.",
    401: "It does not know who posts: check authorization_file, or the secret in the address.",
    403: "It does not allow the post: check authorization_file, secret_file and its list of senders.",
    404: "Check the path of the address.",
    405: "It takes no POST there: check the path of the address.",
    413: "It takes no such large posts.",
    429: "It asks for fewer posts; delivery waits and tries again.",
}


def probe(settings: Settings, name: str) -> tuple[bool, list[str]]:
    """Whether all addresses of receiver `name` took a test notification, and a line for each. Raises ConfigError."""
    routes = {route.name: route for route in settings.notify.routes}
    if name not in routes:
        raise ConfigError(
            f"--test-receiver: there is no receiver `{name}`; there are: {', '.join(sorted(routes)) or 'none'}."
        )
    route = routes[name]
    if isinstance(route, Alertmanager):
        results = [_instance(settings, route, url) for url in route.urls]
    else:
        assert isinstance(route, Receiver)
        results = [_webhook(settings, route)]
    return all(success for success, _ in results), [line for _, line in results]


def _webhook(settings: Settings, receiver: Receiver) -> tuple[bool, str]:
    url = (
        receiver.url if receiver.url is not None else read(receiver, "url_file", receiver.url_file)
    )
    transport = WebhookTransport(receiver)
    batch = Batch(Group("", "", urgent=False), [Entry(_alert(settings), None)])
    message_id, body = render(batch, receiver, settings.notify.external_url)
    return _told(
        f"receiver `{receiver.name}` at {_host(url)}",
        receiver.timeout_seconds,
        lambda: transport.post(message_id, body),
    )


def _instance(settings: Settings, manager: Alertmanager, url: str) -> tuple[bool, str]:
    transport, probe = AlertmanagerTransport(manager, url), _alert(settings)
    body = postable(
        probe,
        "firing",
        probe.at,
        time.time(),
        ENDS_AFTER_SECONDS,
        settings.notify.external_url,
        None,
    )
    return _told(
        f"Alertmanager `{manager.name}` at {_host(url)}",
        manager.timeout_seconds,
        lambda: transport.post([body]),
    )


def _told(who: str, timeout: float, post: Any) -> tuple[bool, str]:
    began = time.monotonic()
    try:
        answer: Answer = post()
    except NotDeliveredError as error:
        if error.status is None:
            return (
                False,
                f"{who} did not take the test notification: {error} (time-out {timeout:g} s).",
            )
        cure = CURES.get(
            error.status,
            "It failed by itself; delivery would try again."
            if error.again
            else "Delivery would not try again.",
        )
        return (
            False,
            f"{who} did not take the test notification: HTTP {error.status}{_words(error.text)}. {cure}",
        )
    took = round((time.monotonic() - began) * 1000)
    return (
        True,
        f"ok: {who} took the test notification: HTTP {answer.status} after {took} ms{_words(answer.text)}",
    )


def _words(text: str) -> str:
    return f", saying: {text}" if text else ""


def _host(url: str) -> str:
    """host:port; the rest of an address may be a secret."""
    return urlsplit(url).netloc.rpartition("@")[2]


def _alert(settings: Settings) -> Alert:
    now = time.time()
    labels = {"alertname": TEST, "severity": "info"}
    mark = fingerprint(labels)
    return Alert(
        id=f"{mark}.{round(now * 1000):x}.firing",
        fingerprint=mark,
        state="firing",
        labels=labels,
        annotations={
            "summary": "A test notification of Tidemark.",
            "description": "Somebody ran `tidemark check-config --test-receiver`. Nothing is wrong.",
            "runbook_url": f"{settings.detect.runbook_url}#{TEST.lower()}",
        },
        starts_at=now,
        at=now,
    )
