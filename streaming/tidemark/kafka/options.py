"""kafka-python's options for a configured connection."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from tidemark.core.errors import ConfigError
from tidemark.settings import Connection

KNOWN: Final = frozenset(
    KafkaAdminClient.DEFAULT_CONFIG.keys()
    | KafkaConsumer.DEFAULT_CONFIG.keys()
    | KafkaProducer.DEFAULT_CONFIG.keys()
)


def client_options(connection: Connection) -> dict[str, Any]:
    """The bootstrap servers and the options of `client`, with the secrets of `…_file` options read.

    Raises ConfigError for an option that kafka-python does not have or a file that cannot be read.
    """
    options: dict[str, Any] = {"bootstrap_servers": connection.bootstrap_servers}
    for key, value in connection.client.items():
        name = key.removesuffix("_file")
        if name not in KNOWN:
            close = get_close_matches(name, KNOWN, n=1)
            hint = f"; did you mean `{close[0]}`?" if close else ""
            raise ConfigError(f"configuration: client.{key} is not an option of kafka-python{hint}")
        try:
            options[name] = (
                value if name == key else Path(value).read_text(encoding="utf-8").strip()
            )
        except OSError as error:
            raise ConfigError(
                f"configuration: client.{key}: cannot read {value}: {error.strerror}."
            ) from None
    return options
