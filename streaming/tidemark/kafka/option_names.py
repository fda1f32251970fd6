"""Client options under the names that the user wrote: of a connection, or of a properties file.

The checks write `client.security_protocol`. In a message it becomes `kafka.client.…`, the client of
a named cluster, or the property of `--command-config`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tidemark.core.errors import TidemarkError
from tidemark.settings import Cluster, Connection

# Java's name -> kafka-python's.
PROPERTIES: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "client.id": "client_id",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.password": "ssl_password",
}
# Those that a properties file gives in another way.
_WITHIN: Final = {
    "sasl_plain_username": "username of sasl.jaas.config",
    "sasl_plain_password": "password of sasl.jaas.config",
    "sasl_oauth_token_file": "sasl.oauthbearer.token.endpoint.url",
    "ssl_check_hostname": "ssl.endpoint.identification.algorithm",
}
_PROPERTY: Final = {option: name for name, option in PROPERTIES.items()} | _WITHIN
_OPTION: Final = re.compile(
    r"(?<![\w./-])client\.((?:s(?:sl|asl|ecurity)|socks5|proxy|api|client|connections|max|metadata"
    r"|receive|send|reconnect|request|retry|bootstrap)_\w+)"
)
# An option, or an entry that is none.
_START: Final = r"^(configuration: )client(?=[.:])"
_FILE_TOO: Final = re.compile(r" \(or \w+_file\)")


class FromProperties(dict[str, Any]):
    """The options of `--command-config`."""


class FromKafka(dict[str, Any]):
    """The options of `kafka.client`, also for a cluster that has only its servers of its own."""


@contextmanager
def named_options(connection: Connection) -> Iterator[None]:
    """Names the options of a connection in the message of a TidemarkError."""
    try:
        yield
    except TidemarkError as error:
        message = with_names(str(error), connection)
        if message == str(error):
            raise
        raise type(error)(message) from None


def with_names(message: str, connection: Connection) -> str:
    """A message of the client's checks, with the names of the connection's options."""
    client = connection.client
    if isinstance(client, FromProperties):
        text = _FILE_TOO.sub("", message)
        text = _OPTION.sub(lambda match: _property(match[1]), text)
        return text.replace("configuration: ", "--command-config: ", 1)
    if isinstance(connection, Cluster) and not isinstance(client, FromKafka):
        return re.sub(_START, rf"\1cluster `{connection.name}`: client", message)
    text = re.sub(_START, r"\1kafka.client", message)
    return _OPTION.sub(r"kafka.client.\1", text)


def _property(option: str) -> str:
    return _PROPERTY.get(option, option.replace("_", "."))


def of_kafka(client: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `kafka.client` for another connection, which keep their names in messages."""
    return client if isinstance(client, FromProperties) else FromKafka(client)
