"""kafka-python's options for a configured connection, checked before anything connects.

kafka-python ignores a security protocol that it does not know and speaks plaintext: every value is
checked here, and the certificates and keys are loaded once. No message shows a value that may be a
secret. An error names an option as the user wrote it: of a connection, or of a properties file.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import Meta, ValidationError, convert, defstruct, structs

from tidemark.core.errors import ConfigError
from tidemark.core.extras import install_command
from tidemark.kafka.secret_files import file_text
from tidemark.settings import Cluster, Connection
from tidemark.settings.conversion import explain, sentence
from tidemark.settings.files import check_opens, check_regular, load_authorities, load_pair
from tidemark.settings.forms import url_problem
from tidemark.settings.spark_entries import Mechanism, Protocol

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

# Read again for each token.
READ_HERE: Final = ("sasl_oauth_client_secret_file", "sasl_oauth_token_file")
PATHS: Final = (
    *("ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_oauth_cafile"),
    *READ_HERE,
)
NUMBERS: Final = (
    *("connections_max_idle_ms", "max_in_flight_requests_per_connection", "metadata_max_age_ms"),
    *("receive_buffer_bytes", "receive_message_max_bytes", "send_buffer_bytes"),
    *("reconnect_backoff_ms", "reconnect_backoff_max_ms", "request_timeout_ms"),
    *("retry_backoff_ms", "bootstrap_timeout_ms"),
)
TEXTS: Final = (
    *("client_id", "sasl_plain_username", "sasl_plain_password", "ssl_password"),
    *("sasl_kerberos_name", "sasl_kerberos_service_name", "sasl_kerberos_domain_name"),
    *("sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_scope"),
)
PROXIES: Final = ("socks5_proxy", "proxy_url")
# Of C, whose integers socket options take, and of the Java client, to which the stream passes them.
MAX_NUMBER: Final = 2**31 - 1
_Part = Annotated[int, Meta(ge=0, le=99)]
# As kafka-python's own classes of proxies take it, with a port that can be used.
_PROXY: Final = Meta(
    pattern=r"^(socks5h?|http)://[^/\s]+:([1-9]\d{0,3}|[1-5]\d{4}|6[0-5]\d{3})/?\Z",
    description="socks5://host:1080 or http://host:3128",
)
# The names and types of the options; null is kafka-python's default.
KINDS: Final[Mapping[str, Any]] = {
    "security_protocol": Protocol,
    "sasl_mechanism": Mechanism,
    "client_dns_lookup": Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"],
    "ssl_check_hostname": bool,
    "api_version": Annotated[tuple[_Part, ...], Meta(min_length=2, max_length=3)],
    **dict.fromkeys(PROXIES, Annotated[str, _PROXY]),
    **dict.fromkeys((*TEXTS, *PATHS), str),
    **dict.fromkeys(NUMBERS, Annotated[int, Meta(ge=1, le=MAX_NUMBER)]),
}
Options: Final = defstruct(
    "Options",
    [(name, kind | None, None) for name, kind in KINDS.items()],
    kw_only=True,
    forbid_unknown_fields=True,
)
# kafka-python 3.0 has them in its tables only. What is wrong, and the cure.
BROKEN: Final = {
    "ssl_ciphers": "kafka-python ignores it and takes each cipher of OpenSSL; remove it",
    "ssl_crlfile": "kafka-python fails to load revocation lists, at each connection; remove it",
}
# Beginning of an option's name -> the protocols with which it has an effect.
_PROTOCOLS: Final = {"sasl_": ("SASL_SSL", "SASL_PLAINTEXT"), "ssl_": ("SSL", "SASL_SSL")}


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


def check_tls(connection: Connection, options: Mapping[str, Any]) -> None:
    """Raises ConfigError for a file that holds no certificate or key, or not the pair."""
    for name in ("sasl_oauth_cafile", "ssl_cafile"):
        if options.get(name):
            read_option(connection, name, load_authorities, options[name])
    certificate, key = options.get("ssl_certfile"), options.get("ssl_keyfile")
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        read_option(
            connection,
            "ssl_keyfile" if key else "ssl_certfile",
            lambda path: load_pair(context, certificate, path, options.get("ssl_password", "")),
            key or certificate,
        )


def check_authorities(path: str, option: str) -> None:
    """Raises ConfigError where a file holds no certificate as PEM text."""
    try:
        load_authorities(path)
    except OSError as error:
        raise ConfigError(
            f"configuration: {option}: cannot read the file: {error.strerror}."
        ) from None


def client_options(connection: Connection) -> dict[str, Any]:
    """The bootstrap servers and the options of `client`, with the secrets of `…_file` options read.

    Raises ConfigError for an option that kafka-python does not have, a value that it does not take,
    a file that cannot be read, and security options that contradict each other.
    """
    try:
        checked = structs.asdict(convert(_with_files_read(connection), Options))
    except ValidationError as error:
        raise option_error(connection, *explain(error, Options)) from None
    options = {name: value for name, value in checked.items() if value is not None}
    for name in PATHS:
        if name in options:
            # Tidemark reads the files of OAuth itself; OpenSSL waits for ever in a pipe.
            check = check_opens if name in READ_HERE else check_regular
            read_option(connection, name, check, options[name])
    for name, problem in _contradictions(options):
        raise option_error(connection, name, problem)
    return {"bootstrap_servers": connection.bootstrap_servers, **options}


def _with_files_read(connection: Connection) -> dict[str, Any]:
    """The options of `client`, with what the file of a `…_file` option holds in its place."""
    given = dict(connection.client)
    for key, value in connection.client.items():
        name = key.removesuffix("_file")
        if key in BROKEN:
            raise option_error(connection, key, f"it cannot be used: {BROKEN[key]}")
        if key in KINDS or name not in KINDS:
            continue
        del given[key]
        if value is None:
            continue
        if given.get(name) is not None:
            raise option_error(connection, name, f"{key} is there too: give one of them")
        if not isinstance(value, str):
            cure = "write one path" if isinstance(value, list | dict) else "write it in quotes"
            raise option_error(connection, key, f"it must be a path; {cure}")
        given[name] = read_option(connection, key, file_text, value)
    return given


def _contradictions(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(option, problem and cure)."""
    protocol = options.get("security_protocol", "PLAINTEXT")
    for name in options:
        for start, protocols in _PROTOCOLS.items():
            if name.startswith(start) and protocol not in protocols:
                cure = f"set {' or '.join(protocols)}"
                yield name, f"it has no effect with the security protocol {protocol}; {cure}"
    for name, user in _needed(protocol, options).items():
        if not options.get(name):
            yield name, f"it is missing; {user} needs it"
    mechanism, url = options.get("sasl_mechanism"), options.get("sasl_oauth_token_url")
    if mechanism != "OAUTHBEARER":
        for name in options:
            if name.startswith("sasl_oauth_"):
                yield name, "it has no effect without the mechanism OAUTHBEARER"
    if url is not None and url_problem(url) is not None:
        yield "sasl_oauth_token_url", "it must be like https://host/token"


def _needed(protocol: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Option -> what needs it."""
    mechanism, needed = options.get("sasl_mechanism"), {}
    if protocol.startswith("SASL_"):
        needed["sasl_mechanism"] = f"the security protocol {protocol}"
    if mechanism == "PLAIN" or str(mechanism).startswith("SCRAM-"):
        names = ("sasl_plain_username", "sasl_plain_password")
        needed |= dict.fromkeys(names, str(mechanism))
    if mechanism == "OAUTHBEARER" and "sasl_oauth_token_file" not in options:
        oauth = ("sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_client_secret_file")
        needed |= dict.fromkeys(oauth, "OAUTHBEARER without a sasl_oauth_token_file")
    if "ssl_keyfile" in options:
        needed["ssl_certfile"] = "the key of ssl_keyfile"
    return needed


def check_packages(connection: Connection, options: Mapping[str, Any]) -> None:
    """Raises ConfigError where kafka-python needs a package for the mechanism (Java does not)."""
    cures = {
        "gssapi": f"install it with Tidemark's wheel: {install_command('kerberos')}",
        "botocore": "install it: pip install botocore",
    }
    mechanism = options.get("sasl_mechanism", "")
    package = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}.get(mechanism)
    if package is not None and find_spec(package) is None:
        problem = f"{mechanism} needs the package {package}; {cures[package]}"
        raise option_error(connection, "sasl_mechanism", problem)
