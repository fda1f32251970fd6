"""Spark's Kafka options: the configured kafka-python options under the Java client's names.

Certificates and keys are inline (`ssl.truststore.certificates`, KIP-651): executors on other
machines need no files. Entries of `stream.spark` that begin with `kafka.` are Java client options
too and win over everything here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tidemark.core.errors import ConfigError
from tidemark.kafka.options import client_options
from tidemark.settings import Connection, Stream

# kafka-python's name with dots for underscores is the Java name.
SAME_NAME: Final = frozenset(
    {
        *("security_protocol", "sasl_mechanism", "sasl_kerberos_service_name"),
        *("client_id", "client_dns_lookup", "metadata_max_age_ms", "request_timeout_ms"),
        *("connections_max_idle_ms", "retry_backoff_ms"),
        *("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
        *("receive_buffer_bytes", "send_buffer_bytes"),
    }
)
# They tune kafka-python only: the Java client negotiates versions, waits for the bootstrap and
# sizes frames in its own way.
PYTHON_ONLY: Final = frozenset(
    {
        *("api_version", "bootstrap_timeout_ms", "receive_message_max_bytes"),
        "max_in_flight_requests_per_connection",
    }
)
# Translated together by `_tls` and `_sasl`.
TRANSLATED: Final = frozenset(
    {
        *("bootstrap_servers", "sasl_plain_username", "sasl_plain_password"),
        *("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_check_hostname"),
        *("sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_client_secret_file"),
        *("sasl_oauth_scope", "sasl_oauth_token_file", "sasl_oauth_cafile"),
    }
)
LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
)
# Options without a Java form, and the Java option that replaces them.
REPLACED_BY: Final = {
    "sasl_kerberos_name": "kafka.sasl.jaas.config",
    "sasl_kerberos_domain_name": "kafka.sasl.jaas.config",
}
# How long a Kafka read task waits at the end of its range; the default, 500 ms, is most of a batch.
FETCH_WAIT_MS: Final = 20
# Java unpacks so many records at once, of up to 16 MiB each (`step_over`); its default is 500.
POLL_RECORDS: Final = 10
# A paused broker accepts connections and never answers: try another one, or the new leader.
REQUEST_TIMEOUT_MS: Final = 3_000
# The driver's Kafka 3.9 client keeps asking a paused broker for the topic as long as its call may
# last, 60 s by default, whatever the request's time-out. With fresh metadata it finds another
# broker within about a request's time-out.
METADATA_AGE_MS: Final = 2_000
# After that Spark tries again with a new client.
CALL_TIMEOUT_MS: Final = 10_000
CALL_RETRIES: Final = 10


def source_options(connection: Connection, stream: Stream) -> dict[str, str]:
    """Options of the Kafka source without the topic.

    Raises ConfigError for a client option that has no Java form.
    """
    given = {
        "kafka.request.timeout.ms": str(REQUEST_TIMEOUT_MS),
        **java_client(connection, stream.spark),
    }
    defaults = {
        "fetchOffset.numRetries": str(CALL_RETRIES),
        # Kafka's client rejects a call time-out below the request time-out.
        "kafka.default.api.timeout.ms": str(
            max(CALL_TIMEOUT_MS, int(given["kafka.request.timeout.ms"]))
        ),
        "kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS),
        "kafka.max.poll.records": str(POLL_RECORDS),
        "kafka.metadata.max.age.ms": str(METADATA_AGE_MS),
    }
    return {**defaults, **given}


def sink_options(connection: Connection, stream: Stream) -> dict[str, str]:
    """Options of the Kafka sink without topics. Raises ConfigError as `source_options` does.

    `acks=all`: a transition is published once and must survive its broker. Where the event topics
    share brokers with the watched ones, a batch waits for a hanging follower until it leaves their
    in-sync sets. With `acks=1` the readers wait for it: they read up to the high watermark.
    """
    defaults = {
        "kafka.acks": "all",
        "kafka.linger.ms": "5",
        "kafka.batch.size": str(256 * 1024),
        # The only codec that kafka-python reads without further packages.
        "kafka.compression.type": "gzip",
        "kafka.compression.gzip.level": "1",
        "kafka.max.request.size": str(4 * 1024 * 1024),
        "kafka.request.timeout.ms": str(REQUEST_TIMEOUT_MS),
    }
    return {**defaults, **java_client(connection, stream.spark)}


def java_client(connection: Connection, spark: Mapping[str, str]) -> dict[str, str]:
    """`kafka.…` options of both ends of the query. With passwords: never log them."""
    client = client_options(connection)
    given = {key: value for key, value in spark.items() if key.startswith("kafka.")}
    options = {"kafka.bootstrap.servers": ",".join(connection.bootstrap_servers)}
    for name, value in client.items():
        if name in SAME_NAME and value is not None:
            options["kafka." + name.replace("_", ".")] = str(value)
        elif name not in SAME_NAME | PYTHON_ONLY | TRANSLATED:
            _require_replacement(name, given)
    return {**options, **_tls(client), **_sasl(client, given), **given}


def _require_replacement(name: str, given: Mapping[str, str]) -> None:
    replacement = REPLACED_BY.get(name)
    if replacement is None:
        raise ConfigError(
            f"configuration: the stream cannot pass kafka.client.{name} to Spark's Kafka client. "
            "Remove it, or give the stream a configuration file without it and the Java client's "
            "option as `kafka.…` in stream.spark."
        )
    if replacement not in given:
        raise ConfigError(
            f"configuration: kafka.client.{name} has no form that Spark's Kafka client reads. "
            f"Give `{replacement}` in stream.spark too."
        )


def _tls(client: Mapping[str, Any]) -> dict[str, str]:
    options = {}
    if client.get("ssl_cafile"):
        options["kafka.ssl.truststore.type"] = "PEM"
        options["kafka.ssl.truststore.certificates"] = _pem("ssl_cafile", client["ssl_cafile"])
    if client.get("ssl_certfile"):
        chain = _pem("ssl_certfile", client["ssl_certfile"])
        key_option = "ssl_keyfile" if client.get("ssl_keyfile") else "ssl_certfile"
        key = _private_key(
            key_option, str(client[key_option]), _pem(key_option, client[key_option])
        )
        options["kafka.ssl.keystore.type"] = "PEM"
        options["kafka.ssl.keystore.certificate.chain"] = chain
        options["kafka.ssl.keystore.key"] = key
        if client.get("ssl_password"):
            options["kafka.ssl.key.password"] = str(client["ssl_password"])
    if client.get("ssl_check_hostname") is False:
        options["kafka.ssl.endpoint.identification.algorithm"] = ""
    return options


def _pem(option: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"configuration: kafka.client.{option}: cannot read the file: {error.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"configuration: kafka.client.{option}: {path} is not PEM text."
        ) from None


def _private_key(option: str, path: str, text: str) -> str:
    """The PKCS#8 block of a PEM file: the only form that Kafka's DefaultSslEngineFactory reads."""
    for label in ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"):
        begin, end = f"-----BEGIN {label}-----", f"-----END {label}-----"
        if begin in text and end in text:
            return text[text.index(begin) : text.index(end) + len(end)] + "\n"
    raise ConfigError(
        f"configuration: kafka.client.{option}: {path} holds no PKCS#8 private key, "
        "which Spark's Kafka client needs. "
        f"Convert it: openssl pkcs8 -topk8 -nocrypt -in {path} -out key.pem"
    )


def _sasl(client: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    if (
        not str(client.get("security_protocol", "")).startswith("SASL_")
        or "kafka.sasl.jaas.config" in given
    ):
        return {}
    mechanism = str(client.get("sasl_mechanism"))
    if mechanism == "OAUTHBEARER":
        return _oauth(client)
    module = LOGIN_MODULES.get(mechanism)
    if module is None:
        raise ConfigError(
            f"configuration: the stream cannot pass kafka.client.sasl_mechanism {mechanism} to "
            "Spark's Kafka client. "
            "Give its login module as `kafka.sasl.jaas.config` in stream.spark."
        )
    user, password = _quoted(client["sasl_plain_username"]), _quoted(client["sasl_plain_password"])
    return {"kafka.sasl.jaas.config": f"{module} required username={user} password={password};"}


def _oauth(client: Mapping[str, Any]) -> dict[str, str]:
    """The Java client asks the same endpoint, or reads the same file, itself (KIP-768)."""
    options = {"kafka.sasl.login.callback.handler.class": OAUTH_HANDLER}
    words = [f"{OAUTH_MODULE} required"]
    if client.get("sasl_oauth_token_file"):
        path = Path(client["sasl_oauth_token_file"]).absolute()
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = path.as_uri()
    else:
        secret = _pem("sasl_oauth_client_secret_file", client["sasl_oauth_client_secret_file"])
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = client["sasl_oauth_token_url"]
        words.append(f"clientId={_quoted(client['sasl_oauth_client_id'])}")
        words.append(f"clientSecret={_quoted(secret.strip())}")
        if client.get("sasl_oauth_scope"):
            words.append(f"scope={_quoted(client['sasl_oauth_scope'])}")
        if client.get("sasl_oauth_cafile"):
            # JaasOptionsUtils takes the endpoint's TLS options from the login module's.
            authorities = _pem("sasl_oauth_cafile", client["sasl_oauth_cafile"])
            words.append('ssl.truststore.type="PEM"')
            words.append(f"ssl.truststore.certificates={_quoted(authorities)}")
    return {**options, "kafka.sasl.jaas.config": " ".join(words) + ";"}


def _quoted(value: Any) -> str:
    """A string of a JAAS configuration, which java.io.StreamTokenizer reads."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r", "\\r").replace("\n", "\\n") + '"'
