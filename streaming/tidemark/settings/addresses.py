"""Addresses and URLs. No message shows a part that may be a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from tidemark.core.errors import ConfigError
from tidemark.settings.schema import Settings

# `requests` would drop them, and post without credentials.
LOGIN_CURE: Final = (
    "the URL must have no user and no password. Write `Basic` and base64 of user:password into the "
    "file of authorization_file."
)


def parse_address(text: str) -> tuple[str, int]:
    """("::1", 9092) of "[::1]:9092". Raises ConfigError where the text is not a host and port."""
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/@\[\]]+)):(\d{1,5})", text)
    if match is None or not text.isascii() or int(match[3]) > 65535 or not _is_host(match):
        raise ConfigError(
            f"configuration: `{_shown(text)}` is not a host:port, "
            "such as kafka-1.example.org:9092 or [::1]:9092."
        )
    return match[1] or match[2], int(match[3])


def _is_host(match: re.Match[str]) -> bool:
    """Python fails to look up a name with an empty or a long part, in words of its own."""
    if match[1]:
        try:
            return IPv6Address(match[1]) is not None
        except ValueError:
            return False
    return all(0 < len(part) < 64 for part in match[2].removesuffix(".").split("."))


def check_addresses(settings: Settings) -> None:
    """Raises ConfigError for the first address or URL that is wrong, with its option."""
    for option, address, to_connect in _addresses(settings):
        try:
            _, port = parse_address(address)
        except ConfigError as error:
            text = str(error).removeprefix("configuration: ")
            raise ConfigError(f"configuration: {option}: {text}") from None
        if to_connect and port == 0:
            raise ConfigError(
                f"configuration: {option}: `{_shown(address)}` has port 0; write the port of the "
                "listener, such as 9092."
            )
    for option, url in _urls(settings):
        if not is_url(url):
            # A URL may contain a secret: the message shows its beginning only.
            beginning = "" if "@" in url else f" that begins with `{url[:8]}`"
            raise ConfigError(
                f"configuration: {option}: a URL{beginning} is not an http:// or https:// URL. "
                "Write it like https://host.example.org/path."
            )
    published = dict(_published(settings))
    for option, url in _urls(settings):
        if option not in published and has_login(url):
            raise ConfigError(f"configuration: {option}: {LOGIN_CURE}")
    for option, url in published.items():
        if has_login(url):
            raise ConfigError(
                f"configuration: {option}: every alert shows this URL: it must have no user and "
                "no password. Write it like https://host.example.org/path."
            )


def has_login(url: str) -> bool:
    """Whether a URL has a user or a password; a text that is no URL has none."""
    try:
        return "@" in urlsplit(url).netloc
    except ValueError:
        return False


def is_url(url: str) -> bool:
    """Whether it is an http:// or https:// URL with a host, and with a port that can be used."""
    try:
        parts = urlsplit(url)
        return bool(
            re.match(r"https?://[^/\s]", url)
            and parts.hostname
            and (parts.port is None or parts.port > 0)
            and not re.search(r"\s", url)
        )
    except ValueError:
        return False


def _shown(address: str) -> str:
    """What follows a user and a password, at most 100 characters."""
    return address.rpartition("@")[2][:100]


def _addresses(settings: Settings) -> Iterator[tuple[str, str, bool]]:
    """(option, address, whether Tidemark connects to it)."""
    for server in settings.kafka.bootstrap_servers:
        yield "kafka.bootstrap_servers", server, True
    for cluster in settings.clusters:
        for server in cluster.bootstrap_servers:
            yield f"cluster `{cluster.name}`: bootstrap_servers", server, True
        for server in cluster.controllers:
            yield f"cluster `{cluster.name}`: controllers", server, True
    for name in ("collect", "stream", "export"):
        listen = getattr(settings, name).listen
        if listen is not None:
            yield f"{name}.listen", listen, False


def _published(settings: Settings) -> Iterator[tuple[str, str]]:
    """The URLs that alerts contain."""
    yield "notify.external_url", settings.notify.external_url
    yield "detect.runbook_url", settings.detect.runbook_url


def _urls(settings: Settings) -> Iterator[tuple[str, str]]:
    notify = settings.notify
    if settings.collect.watchdog_url is not None:
        yield "collect.watchdog_url", settings.collect.watchdog_url
    yield from _published(settings)
    for receiver in notify.receivers:
        if receiver.url is not None:
            yield f"receiver `{receiver.name}`: url", receiver.url
    for manager in notify.alertmanagers:
        for url in manager.urls:
            yield f"receiver `{manager.name}`: urls", url
