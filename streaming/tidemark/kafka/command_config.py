"""`--command-config`: the properties file of Kafka's own tools, as options of kafka-python.

Mirrors java.util.Properties and the security options of CommonClientConfigs. Options without a
meaning here are ignored, as Kafka's tools do, but none of security, also with a typing error: a
connection is never weaker than the file says. No message shows a value of a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tidemark.core.errors import ConfigError
from tidemark.core.text import has_control_character
from tidemark.kafka.options import MAX_NUMBER, NUMBERS, PROPERTIES, FromProperties, option_error
from tidemark.settings import Connection
from tidemark.settings.files import read_bounded
from tidemark.settings.java_options import SECURITY_PREFIXES, near_security_option

MAX_BYTES: Final = 1024 * 1024
# Read together with others.
TOGETHER: Final = (
    *("sasl.jaas.config", "ssl.truststore.type", "ssl.keystore.type", "ssl.keystore.password"),
    *("ssl.truststore.password", "ssl.endpoint.identification.algorithm"),
    *("sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class"),
)
# OpenSSL negotiates these.
NEGOTIATED: Final = ("ssl.protocol", "ssl.enabled.protocols")
_PAIR: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
_FILE_URL: Final = re.compile(r"(?i:file):(?://[^/?#]*)?([^?#]*)(?:[?#].*)?")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_command_config(path: Path) -> dict[str, Any]:
    """The options of `client`. Raises ConfigError with the property and the cure."""
    try:
        data = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"--command-config: cannot read {path}: {error.strerror}.") from None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" in text:
        raise ConfigError(f"--command-config: {path} is not a properties file.")
    return FromProperties(client_of(parse_properties(text)))


def client_of(properties: Mapping[str, str]) -> dict[str, Any]:
    """kafka-python's options of Java's. Raises ConfigError."""
    known = {*PROPERTIES, *TOGETHER, *NEGOTIATED}
    for key in properties:
        if key in known:
            continue
        near = near_security_option(key)
        if near is not None:
            raise _error(
                f"`{_shown(key)}` is no option of Kafka; did you mean `{near}`? Write that"
            )
        if key.startswith(SECURITY_PREFIXES):
            raise _error(f"`{_shown(key)}` is not supported; give a configuration by --config")
    client: dict[str, Any] = {
        name: properties[key] for key, name in PROPERTIES.items() if properties.get(key)
    }
    for key, value in properties.items():
        name = key.replace(".", "_")
        if name in NUMBERS:
            is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(MAX_NUMBER))
            client[name] = int(value) if is_number else value
    _check_stores(properties)
    if properties.get("ssl.endpoint.identification.algorithm", "https") == "":
        client["ssl_check_hostname"] = False
    client |= _login(properties)
    for name, value in client.items():
        if isinstance(value, str) and has_control_character(value):
            raise option_error(
                Connection(client=FromProperties()),
                name,
                "it contains a control character; remove it",
            )
    return client


def _shown(key: str) -> str:
    """A line without a separator may be anything: shown where it looks like a key."""
    return key if re.fullmatch(r"[A-Za-z][\w.-]{0,99}", key) else "…"


def _check_stores(properties: Mapping[str, str]) -> None:
    for store in ("truststore", "keystore"):
        if not properties.get(f"ssl.{store}.location"):
            continue
        if properties.get(f"ssl.{store}.type", "JKS").upper() != "PEM":
            raise _error(
                f"`ssl.{store}.location` must be a PEM file, with `ssl.{store}.type=PEM`; convert "
                "a Java keystore: keytool -importkeystore -deststoretype PKCS12, then openssl "
                "pkcs12 -nodes"
            )


def _login(properties: Mapping[str, str]) -> dict[str, Any]:
    """Options of the mechanism, by its JAAS line."""
    mechanism = properties.get("sasl.mechanism", "")
    options = _jaas(properties.get("sasl.jaas.config", ""))
    if mechanism == "OAUTHBEARER":
        url = _FILE_URL.fullmatch(properties.get("sasl.oauthbearer.token.endpoint.url", ""))
        if url is None:
            raise _error(
                "`sasl.oauthbearer.token.endpoint.url` must be a file: URL of a token; for client "
                "credentials give a configuration by --config, with sasl_oauth_token_url and "
                "sasl_oauth_client_secret_file"
            )
        return {"sasl_oauth_token_file": url[1]}
    if mechanism == "GSSAPI":
        if options.get("useKeyTab", "").lower() == "true":
            raise _error(
                "`sasl.jaas.config` has a key tab, which Tidemark does not read; run kinit -kt "
                "FILE PRINCIPAL before, and leave it out"
            )
        return {}
    if "sasl.jaas.config" in properties and not {"username", "password"} <= options.keys():
        raise _error(
            '`sasl.jaas.config` must be like MODULE required username="…" password="…"; (with '
            "the semicolon)"
        )
    return {f"sasl_plain_{name}": options[name] for name in ("username", "password") if options}


def _jaas(line: str) -> dict[str, str]:
    """The options of a login module; {} for what is no such line."""
    match = re.fullmatch(
        r"\s*[\w.$]+\s+(?:required|requisite|sufficient)\b(.*);\s*", line, re.DOTALL
    )
    if match is None:
        return {}
    return {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted or not plain else plain
        for name, quoted, plain in _PAIR.findall(match[1])
    }


def parse_properties(text: str) -> dict[str, str]:
    """Key -> value, as java.util.Properties.load reads them; the last of equal keys wins."""
    found = {}
    for line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
        assert match is not None
        found[_unescaped(match[1])] = _unescaped(match[2])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments, joined where one ends with an odd number of backslashes."""
    parts: list[str] = []
    for line in re.split(r"\r\n|\r|\n", text):
        rest = line.lstrip(" \t\f")
        if not parts and (not rest or rest[0] in "#!"):
            continue
        slashes = len(rest) - len(rest.rstrip("\\"))
        if slashes % 2:
            parts.append(rest[:-1])
            continue
        yield "".join([*parts, rest])
        parts = []
    if parts:
        yield "".join(parts)


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", character, text, flags=re.DOTALL)


def _error(message: str) -> ConfigError:
    return ConfigError(f"--command-config: {message}.")
