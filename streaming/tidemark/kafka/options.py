"""kafka-python's options for a configured connection, checked before anything connects.

kafka-python ignores a security protocol that it does not know and speaks plaintext: every value is
checked here. No message shows a value that may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from tidemark.core.errors import ConfigError
from tidemark.core.extras import install_command
from tidemark.kafka.option_names import named_options
from tidemark.settings import Connection
from tidemark.settings.conversion import near_key, near_word, sentence
from tidemark.settings.files import check_opens, check_regular, read_text
from tidemark.settings.forms import url_problem
from tidemark.settings.spark_entries import MECHANISMS, PROTOCOLS

CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "security_protocol": PROTOCOLS,
    "sasl_mechanism": MECHANISMS,
    "client_dns_lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
}
SECRETS: Final = ("sasl_plain_password", "ssl_password")
TEXTS: Final = (
    *("client_id", "sasl_plain_username", "sasl_kerberos_name", "sasl_kerberos_service_name"),
    *("sasl_kerberos_domain_name", "socks5_proxy", "proxy_url"),
    *("sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_scope"),
)
# Read again for each token.
READ_HERE: Final = ("sasl_oauth_client_secret_file", "sasl_oauth_token_file")
PATHS: Final = (
    *("ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_oauth_cafile"),
    *READ_HERE,
)
BOOLEANS: Final = ("ssl_check_hostname",)
NUMBERS: Final = (
    *("connections_max_idle_ms", "max_in_flight_requests_per_connection", "metadata_max_age_ms"),
    *("receive_buffer_bytes", "receive_message_max_bytes", "send_buffer_bytes"),
    *("reconnect_backoff_ms", "reconnect_backoff_max_ms", "request_timeout_ms"),
    *("retry_backoff_ms", "bootstrap_timeout_ms"),
)
API_VERSION: Final = "api_version"
PROXIES: Final = ("socks5_proxy", "proxy_url")
# kafka-python 3.0 has them in its tables only. What is wrong, and the cure.
BROKEN: Final = {
    "ssl_ciphers": "kafka-python ignores it and takes each cipher of OpenSSL; remove it",
    "ssl_crlfile": "kafka-python fails to load revocation lists, at each connection; remove it",
}
KNOWN: Final = frozenset(
    {*CHOICES, *SECRETS, *TEXTS, *PATHS, *BOOLEANS, *NUMBERS, *BROKEN, API_VERSION}
)
# Of C, whose integers socket options take, and of the Java client, to which the stream passes them.
MAX_NUMBER: Final = 2**31 - 1
# Mechanisms that send a user and a password.
WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def client_options(connection: Connection) -> dict[str, Any]:
    """The bootstrap servers and the options of `client`, with the secrets of `…_file` options read.

    Raises ConfigError for an option that kafka-python does not have, a value that it does not take,
    a file that cannot be read, and security options that contradict each other.
    """
    with named_options(connection):
        return _client_options(connection)


def _client_options(connection: Connection) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap_servers": connection.bootstrap_servers}
    for key, value in connection.client.items():
        is_file = key not in KNOWN and key.endswith("_file")
        name = key.removesuffix("_file") if is_file else key
        if name not in KNOWN:
            near = near_key(name, KNOWN) or "; remove what docs/guide.md does not name"
            raise _error(f"client: unknown option of kafka-python{near}")
        if value is None:
            continue
        if name in BROKEN:
            raise _error(f"client.{key} cannot be used: {BROKEN[name]}")
        if is_file and connection.client.get(name) is not None:
            raise _error(f"client.{name} and client.{key}: give one of them")
        if is_file:
            value = _read(key, value)  # noqa: PLW2901
        options[name] = _checked(name, value)
    _check_security(options)
    return options


def _read(key: str, path: Any) -> str:
    if not isinstance(path, str):
        raise _error(f"client.{key} must be a path; write it in quotes")
    try:
        return read_text(path)
    except OSError as error:
        raise _error(f"client.{key}: cannot read the file: {error.strerror}") from None


def _checked(name: str, value: Any) -> Any:
    if name in CHOICES:
        return _choice(name, value)
    if name == API_VERSION:
        return _version(value)
    if name in BOOLEANS:
        if not isinstance(value, bool):
            raise _error(f"client.{name} must be true or false")
    elif name in NUMBERS:
        if not _is_whole(value, 1, MAX_NUMBER):
            raise _error(f"client.{name} must be a whole number above 0, at most {MAX_NUMBER}")
    elif not isinstance(value, str):
        raise _error(f"client.{name} must be text; write it in quotes")
    elif name in PATHS:
        _check_readable(name, value)
    elif name in PROXIES and not _is_proxy(value):
        raise _error(f"client.{name} must be like socks5://host:1080 or http://host:3128")
    return value


def _is_whole(value: Any, lowest: int, highest: int) -> bool:
    return type(value) is int and lowest <= value <= highest


def _is_proxy(url: str) -> bool:
    """Whether kafka-python's own classes of proxies take it, with a port that can be used."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("socks5", "socks5h", "http") and not re.search(r"\s", url)
        return known and bool(parts.hostname) and bool(parts.port) and parts.path in ("", "/")
    except ValueError:
        return False


def _choice(name: str, value: Any) -> str:
    choices = CHOICES[name]
    if isinstance(value, str) and value in choices:
        return value
    near = near_word(str(value).upper(), choices)
    raise _error(f"client.{name} must be one of {', '.join(choices)}{near}")


def _version(value: Any) -> tuple[int, ...]:
    parts = value if isinstance(value, list | tuple) else []
    if not 2 <= len(parts) <= 3 or not all(_is_whole(part, 0, 99) for part in parts):
        raise _error(f"client.{API_VERSION} must be a list of numbers, such as [2, 5]")
    return tuple(parts)


def _check_readable(name: str, path: str) -> None:
    try:
        # Tidemark reads the files of OAuth itself; OpenSSL waits for ever in a pipe.
        (check_opens if name in READ_HERE else check_regular)(path)
    except OSError as error:
        raise _error(f"client.{name}: cannot read the file: {error.strerror}") from None


def _check_security(options: Mapping[str, Any]) -> None:
    protocol = options.get("security_protocol", "PLAINTEXT")
    mechanism = options.get("sasl_mechanism")
    has_sasl, has_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    if has_sasl and mechanism is None:
        raise _error(f"client.security_protocol {protocol} needs client.sasl_mechanism")
    for name in options:
        if name.startswith("sasl_") and not has_sasl:
            raise _error(
                f"client.{name} has no effect with client.security_protocol {protocol}; "
                "set SASL_SSL or SASL_PLAINTEXT"
            )
        if name.startswith("ssl_") and not has_tls:
            raise _error(
                f"client.{name} has no effect with client.security_protocol {protocol}; "
                "set SSL or SASL_SSL"
            )
    for name in ("sasl_plain_username", "sasl_plain_password"):
        if mechanism in WITH_PASSWORD and not options.get(name):
            raise _error(f"client.sasl_mechanism {mechanism} needs client.{name} (or {name}_file)")
    _check_mechanism(mechanism, options)
    if options.get("ssl_keyfile") and not options.get("ssl_certfile"):
        raise _error("client.ssl_keyfile needs client.ssl_certfile")


def _check_mechanism(mechanism: str | None, options: Mapping[str, Any]) -> None:
    oauth = [name for name in options if name.startswith("sasl_oauth_")]
    if mechanism == "OAUTHBEARER" and "sasl_oauth_token_file" not in options:
        for name in ("token_url", "client_id", "client_secret_file"):
            if not options.get(f"sasl_oauth_{name}"):
                raise _error(
                    f"client.sasl_mechanism OAUTHBEARER needs client.sasl_oauth_{name}, or "
                    "client.sasl_oauth_token_file with a token that others renew"
                )
        url = options["sasl_oauth_token_url"]
        if url_problem(url) is not None:
            raise _error("client.sasl_oauth_token_url must be like https://host/token")
    elif mechanism != "OAUTHBEARER" and oauth:
        raise _error(f"client.{oauth[0]} needs client.sasl_mechanism OAUTHBEARER")


def check_packages(options: Mapping[str, Any]) -> None:
    """Raises ConfigError where kafka-python needs a package for the mechanism (Java does not)."""
    mechanism = options.get("sasl_mechanism")
    if mechanism == "GSSAPI" and find_spec("gssapi") is None:
        raise _error(
            "client.sasl_mechanism GSSAPI needs the package gssapi; install it with Tidemark's "
            f"wheel: {install_command('kerberos')}"
        )
    if mechanism == "AWS_MSK_IAM" and find_spec("botocore") is None:
        raise _error(
            "client.sasl_mechanism AWS_MSK_IAM needs the package botocore; install it: "
            "pip install botocore"
        )


def _error(message: str) -> ConfigError:
    return ConfigError(f"configuration: {sentence(message)}")
