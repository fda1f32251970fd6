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


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder: secrets and certificates, by names that the tables use."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "password": "hush\n",
        "secret": 'hun"ter2\n',
        "ca.pem": CERTIFICATE,
        "both.pem": CERTIFICATE + PKCS8,
        "authority.pem": "-----BEGIN\nEND-----\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


SECURITY = "org.apache.kafka.common.security"
USER = {"sasl_plain_username": "me"}
OAUTH = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
ENDPOINT = {
    **OAUTH,
    "sasl_oauth_token_url": "https://h/token",
    "sasl_oauth_client_id": "tidemark",
    "sasl_oauth_client_secret_file": "secret",
}
LOGIN = f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required clientId="tidemark" '
TRUSTED = 'ssl.truststore.type="PEM" ssl.truststore.certificates="-----BEGIN\\nEND-----\\n";'


def password_login(mechanism: str, module: str) -> tuple[dict[str, Any], dict[str, str]]:
    client = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_password": 'a"b\\c',
        **USER,
    }
    login = f'{SECURITY}.{module} required username="me" password="a\\"b\\\\c";'
    return client, {"sasl.jaas.config": login, "sasl.mechanism": mechanism}


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ({}, {"bootstrap.servers": "a:1,b:2"}),
        # Options with the same meaning keep their value.
        (
            {"client_id": "tide", "metadata_max_age_ms": 1000, "security_protocol": "SSL"},
            {"client.id": "tide", "metadata.max.age.ms": "1000", "security.protocol": "SSL"},
        ),
        # Passwords become a login module, with quoting.
        password_login("PLAIN", "plain.PlainLoginModule"),
        password_login("SCRAM-SHA-256", "scram.ScramLoginModule"),
        password_login("SCRAM-SHA-512", "scram.ScramLoginModule"),
        (
            {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_password_file": "password",
                **USER,
            },
            {
                "sasl.jaas.config": f'{SECURITY}.plain.PlainLoginModule required username="me" '
                'password="hush";'
            },
        ),
        # Certificates go inline.
        (
            {
                "security_protocol": "SSL",
                "ssl_cafile": "ca.pem",
                "ssl_certfile": "both.pem",
                "ssl_password": "p",
                "ssl_check_hostname": False,
            },
            {
                "ssl.truststore.type": "PEM",
                "ssl.keystore.type": "PEM",
                "ssl.truststore.certificates": CERTIFICATE,
                "ssl.keystore.key": PKCS8,
                "ssl.key.password": "p",
                "ssl.endpoint.identification.algorithm": "",
            },
        ),
        # The Java client asks for tokens itself.
        (
            ENDPOINT,
            {
                "sasl.oauthbearer.token.endpoint.url": "https://h/token",
                "sasl.login.callback.handler.class": (
                    f"{SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
                ),
                "sasl.jaas.config": LOGIN + 'clientSecret="hun\\"ter2";',
            },
        ),
        (
            {**ENDPOINT, "sasl_oauth_cafile": "authority.pem"},
            {"sasl.jaas.config": LOGIN + 'clientSecret="hun\\"ter2" ' + TRUSTED},
        ),
    ],
)
def test_the_options_of_the_java_client(
    files: Path, client: dict[str, Any], expected: dict[str, str]
) -> None:
    options = java_client(connection(**client), {})
    assert {name: options[f"kafka.{name}"] for name in expected} == expected
    assert client or len(options) == 1


def test_a_token_is_read_from_its_file(files: Path) -> None:
    found = java_client(connection(**OAUTH, sasl_oauth_token_file=str(files / "secret")), {})
    assert found["kafka.sasl.oauthbearer.token.endpoint.url"] == (files / "secret").as_uri()


def test_key_of_the_old_form_is_refused_with_the_conversion(files: Path) -> None:
    key = files / "key.pem"
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n")
    client = {"ssl_certfile": "ca.pem", "ssl_keyfile": str(key)}
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
