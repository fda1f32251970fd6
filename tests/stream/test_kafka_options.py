"""kafka-python's client options under the Java client's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidemark.core.errors import ConfigError
from tidemark.settings import Connection, Stream
from tidemark.stream.kafka_options import java_client, sink_options, source_options

PKCS8 = "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n"


def connection(**client: Any) -> Connection:
    return Connection(bootstrap_servers=["a:1", "b:2"], client=client)


def test_plain_connection_names_every_bootstrap_server() -> None:
    assert java_client(connection(), {}) == {"kafka.bootstrap.servers": "a:1,b:2"}


def test_options_with_the_same_meaning_keep_their_value() -> None:
    options = java_client(
        connection(client_id="tide", metadata_max_age_ms=1000, security_protocol="SSL"), {}
    )
    assert options["kafka.client.id"] == "tide"
    assert options["kafka.metadata.max.age.ms"] == "1000"
    assert options["kafka.security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
def test_passwords_become_a_login_module_with_quoting(mechanism: str, module: str) -> None:
    client = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "me",
        "sasl_plain_password": 'a"b\\c',
    }
    options = java_client(connection(**client), {})
    assert (
        options["kafka.sasl.jaas.config"]
        == f'{module} required username="me" password="a\\"b\\\\c";'
    )
    assert options["kafka.sasl.mechanism"] == mechanism


def test_password_comes_from_its_file(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("hush\n")
    client = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password_file": str(secret),
    }
    assert 'password="hush"' in java_client(connection(**client), {})["kafka.sasl.jaas.config"]


def test_certificates_go_inline(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "both.pem").write_text(CERTIFICATE + PKCS8)
    options = java_client(
        connection(
            security_protocol="SSL",
            ssl_cafile=str(tmp_path / "ca.pem"),
            ssl_certfile=str(tmp_path / "both.pem"),
            ssl_password="p",
            ssl_check_hostname=False,
        ),
        {},
    )
    assert options["kafka.ssl.truststore.type"] == options["kafka.ssl.keystore.type"] == "PEM"
    assert options["kafka.ssl.truststore.certificates"] == CERTIFICATE
    assert options["kafka.ssl.keystore.key"] == PKCS8
    assert options["kafka.ssl.key.password"] == "p"
    assert options["kafka.ssl.endpoint.identification.algorithm"] == ""


def test_key_of_the_old_form_is_refused_with_the_conversion(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text(CERTIFICATE)
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n")
    client = {"ssl_certfile": str(tmp_path / "cert.pem"), "ssl_keyfile": str(key)}
    with pytest.raises(ConfigError, match=r"kafka\.client\.ssl_keyfile: .*openssl pkcs8 -topk8"):
        java_client(connection(security_protocol="SSL", **client), {})


def test_unreadable_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"ssl_cafile: cannot read the file: No such file"):
        java_client(connection(ssl_cafile="/no/such.pem"), {})


@pytest.mark.parametrize(
    ("client", "cure"),
    [
        ({"socks5_proxy": "socks5://p:1080"}, "stream.spark"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "kafka.sasl.jaas.config"),
    ],
)
def test_option_without_a_java_form_is_named_with_the_way_out(
    client: dict[str, Any], cure: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        java_client(connection(**client), {})
    assert list(client)[-1] in str(raised.value)
    assert cure in str(raised.value)


def test_java_option_in_stream_spark_replaces_and_wins() -> None:
    stream = Stream(
        spark={"kafka.ssl.cipher.suites": "B", "kafka.acks": "all", "spark.driver.memory": "2g"}
    )
    options = sink_options(connection(security_protocol="SSL"), stream)
    assert options["kafka.ssl.cipher.suites"] == "B"
    assert options["kafka.acks"] == "all"
    assert not any(key.startswith("spark.") for key in options)


def test_reader_waits_briefly_at_the_end_of_its_range() -> None:
    assert source_options(connection(), Stream())["kafka.fetch.max.wait.ms"] == "20"


def test_a_call_to_a_broker_that_hangs_ends_soon_and_never_before_its_request() -> None:
    options = source_options(connection(), Stream())
    assert (options["kafka.request.timeout.ms"], options["kafka.default.api.timeout.ms"]) == (
        "3000",
        "10000",
    )
    assert int(options["fetchOffset.numRetries"]) >= 10
    assert int(options["kafka.metadata.max.age.ms"]) < 3_000
    patient = source_options(connection(request_timeout_ms=20_000), Stream())
    assert (patient["kafka.request.timeout.ms"], patient["kafka.default.api.timeout.ms"]) == (
        "20000",
        "20000",
    )


def test_oauth_is_asked_for_by_the_java_client_itself(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('hun"ter2\n')
    base = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    client = {
        **base,
        "sasl_oauth_token_url": "https://h/token",
        "sasl_oauth_client_id": "tidemark",
        "sasl_oauth_client_secret_file": str(secret),
    }
    found = java_client(Connection(client=client), {})
    assert found["kafka.sasl.oauthbearer.token.endpoint.url"] == "https://h/token"
    assert found["kafka.sasl.login.callback.handler.class"].endswith("LoginCallbackHandler")
    assert found["kafka.sasl.jaas.config"].endswith(
        'required clientId="tidemark" clientSecret="hun\\"ter2";'
    )
    authority = tmp_path / "ca.pem"
    authority.write_text("-----BEGIN\nEND-----\n")
    found = java_client(Connection(client={**client, "sasl_oauth_cafile": str(authority)}), {})
    assert found["kafka.sasl.jaas.config"].endswith(
        'ssl.truststore.type="PEM" ssl.truststore.certificates="-----BEGIN\\nEND-----\\n";'
    )
    client = {**base, "sasl_oauth_token_file": str(secret)}
    found = java_client(Connection(client=client), {})
    assert found["kafka.sasl.oauthbearer.token.endpoint.url"] == secret.as_uri()
