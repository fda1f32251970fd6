"""The form of a text: an address, a URL, a regular expression, an alert.

Each function gives what is wrong and the cure, or None. No text is in it: it may be a secret.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final
from urllib.parse import urlsplit

from tidemark.core.errors import ConfigError
from tidemark.core.identity import alert_name
from tidemark.core.own_alerts import DELIVERED
from tidemark.detect import DETECTORS
from tidemark.settings.conversion import near_word

# All alerts that receivers can get.
ALERTS: Final = (*map(alert_name, DETECTORS), *DELIVERED)
NO_ADDRESS: Final = "it is not host:port, such as kafka-1.example.org:9092 or [::1]:9092"
NO_URL: Final = "it is not an http:// or https:// URL, such as https://host.example.org/path"
NO_LOGIN: Final = "it must have no user and no password"
# `requests` would drop them, and post without credentials.
LOGIN_CURE: Final = (
    f"{NO_LOGIN}; write `Basic` and base64 of user:password into the file of authorization_file"
)
# Usual ways to write "all topics". What else matches all names is not decidable in general.
_ALL: Final = (".*", ".+", "^.*", "^.*$", ".*$", "^.+$", "(.*)", "(.+)", ".*.*")


def parse_address(text: str, option: str = "the address") -> tuple[str, int]:
    """("::1", 9092) of "[::1]:9092". Raises ConfigError, about the option, for another text."""
    if address_problem(text) is not None:
        raise ConfigError(f"{option}: {NO_ADDRESS}.")
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def servers_of_flag(text: str) -> list[str]:
    """The servers of `--bootstrap`. Raises ConfigError for none, and for one that is no address."""
    servers = [server.strip() for server in text.split(",") if server.strip()]
    if not servers:
        raise ConfigError("--bootstrap is empty; write host:port.")
    for server in servers:
        parse_address(server, "--bootstrap")
    return servers


def address_problem(text: str) -> str | None:
    """Of an address to listen on; port 0 is any."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
        # As Python does to look it up: no label may be empty or long.
        host.encode("idna")
    except ValueError:
        return NO_ADDRESS
    whole = (f"{host}:{port}", f"[{host}]:{port}")
    is_plain = text.isascii() and re.search(r"[\s@]", text) is None
    return None if host and is_plain and text.lower() in whole else NO_ADDRESS


def server_problem(text: str) -> str | None:
    """Of an address to connect to."""
    problem = address_problem(text)
    if problem is None and parse_address(text)[1] == 0:
        return "it has port 0; write the port of the listener, such as 9092"
    return problem


def url_problem(url: str) -> str | None:
    """Of a URL to connect to, whose credentials come from a file."""
    try:
        parts = urlsplit(url)
        fits = bool(re.match(r"https?://[^/\s]", url) and parts.hostname and parts.port != 0)
    except ValueError:
        return NO_URL
    if not fits or re.search(r"\s", url):
        return NO_URL
    return LOGIN_CURE if "@" in parts.netloc else None


def published_problem(url: str) -> str | None:
    """Of a URL that every alert shows."""
    problem = url_problem(url)
    return f"every alert shows this URL: {NO_LOGIN}" if problem == LOGIN_CURE else problem


def expression_problem(text: str) -> str | None:
    """Of a regular expression. Python's own messages contain parts of it."""
    try:
        re.compile(text)
    except re.error as error:
        hint = "; write .* for any text" if text.startswith("*") else ""
        return f"it is not a regular expression: error at character {(error.pos or 0) + 1}{hint}"
    except (OverflowError, RecursionError):
        return "it is not a regular expression: it is too large"
    return None


def deny_problem(text: str) -> str | None:
    """Of an entry of topics_deny."""
    if text in _ALL:
        return (
            "no topic is watched: it matches all names, and wins over topics_allow; remove it. "
            "topics_allow alone also leaves out all others"
        )
    return expression_problem(text)


def alerts_problem(text: str) -> str | None:
    """Of an expression for alerts, which matches at least one."""
    problem = expression_problem(text)
    if problem is not None or any(re.fullmatch(text, name) for name in ALERTS):
        return problem
    # An alert is also found by its detector's id, and without regard to case.
    word = text.replace("_", "").lower()
    names = {name.lower(): name for name in ALERTS}
    # Below it the nearest of many names is often another alert.
    cutoff = 0.8
    close = get_close_matches(word, names, n=1, cutoff=cutoff) or get_close_matches(
        f"kafka{word}", names, n=1, cutoff=cutoff
    )
    hint = f"; did you mean `{names[close[0]]}`?" if close else ""
    return (
        "it matches no alert that receivers get "
        f"(docs/alerts.md of `tidemark assets` lists them){hint}"
    )


def detector_problem(text: str) -> str | None:
    """Of a detector's id."""
    if text in DETECTORS:
        return None
    known = sorted(DETECTORS)
    return f"no such detector; there are {', '.join(known)}{near_word(text, known)}"
