"""Client options under the names that the user wrote: of a connection, or of a properties file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tidemark.core.errors import ConfigError
from tidemark.settings import Cluster, Connection
from tidemark.settings.conversion import sentence

T = TypeVar("T")
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


class FromProperties(dict[str, Any]):
    """The options of `--command-config`."""


class FromKafka(dict[str, Any]):
    """The options of `kafka.client`, also for a cluster that has only its servers of its own."""


def of_kafka(client: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `kafka.client` for another connection, which keep their names in messages."""
    return client if isinstance(client, FromProperties) else FromKafka(client)


def option_error(connection: Connection, option: str, problem: str) -> ConfigError:
    """The error about an option, or about the options as a whole where it is empty."""
    client = connection.client
    if isinstance(client, FromProperties):
        name = _PROPERTY.get(option, option.replace("_", "."))
        return ConfigError(f"--command-config: {sentence(problem, name)}")
    owner = "kafka."
    if isinstance(connection, Cluster) and not isinstance(client, FromKafka):
        owner = f"cluster `{connection.name}`: "
    name = f"{owner}client.{option}".removesuffix(".")
    return ConfigError(f"configuration: {sentence(problem, name)}")


def read_option(connection: Connection, option: str, read: Callable[[str], T], path: str) -> T:
    """What the file of an option holds. Raises ConfigError."""
    try:
        return read(path)
    except OSError as error:
        raise option_error(connection, option, f"cannot read the file: {error.strerror}") from None
