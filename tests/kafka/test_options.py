"""Client options: what is wrong is one line that names the option, and shows no secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka.net.transport import KafkaSSLTransport

from tidemark.core.errors import ConfigError
from tidemark.kafka.options import client_options
from tidemark.settings import Connection

PLAIN = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "tidemark",
    "sasl_plain_password": "hunter2",
}

OAUTH = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauth_client_id": "tidemark",
    "sasl_oauth_client_secret_file": "/dev/null",
}


def options(**client: Any) -> dict[str, Any]:
    return client_options(Connection(bootstrap_servers=["a:1"], client=client))


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    secret, authority = tmp_path / "password", tmp_path / "ca.pem"
    secret.write_text("hunter2\n", encoding="utf-8")
    authority.write_text("x")
    client = {key: value for key, value in PLAIN.items() if key != "sasl_plain_password"}
    files = {"sasl_plain_password_file": str(secret), "ssl_cafile": str(authority)}
    assert options(**client, **files) == {
        "bootstrap_servers": ["a:1"],
        **PLAIN,
        "ssl_cafile": str(authority),
    }


def test_a_version_is_a_tuple_and_null_is_the_default() -> None:
    assert options(api_version=[2, 5], client_id=None) == {
        "bootstrap_servers": ["a:1"],
        "api_version": (2, 5),
    }


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (
            {"security_protocol": "SASL_SSLL"},
            "client.security_protocol: it must be one of PLAINTEXT, ",
        ),
        ({"security_protocol": "SASL_SSLL"}, "did you mean `SASL_SSL`?"),
        ({"security_protocol": "ssl"}, "did you mean `SSL`?"),
        ({**PLAIN, "sasl_mechanism": "SCRAM-SHA-521"}, "did you mean `SCRAM-SHA-512`?"),
        ({**PLAIN, "sasl_mechanism": 5}, "client.sasl_mechanism: Expected `str | null`, got `int`"),
        (
            {"security_protocoll": "SSL"},
            "client: unknown field `security_protocoll`",
        ),
        ({"security_protocoll": "SSL"}, "did you mean `security_protocol`?"),
        (
            {"key_serializer": "x"},
            "client: unknown field; there are security_protocol, ",
        ),
        (
            {"api_version": 2.5},
            "client.api_version: Expected `array | null`, got `float`; write a list",
        ),
        ({"api_version": [-1, 5]}, "client.api_version: Expected `int` >= 0"),
        ({"api_version": [True, 5]}, "client.api_version: Expected `int`, got `bool`"),
        (
            {"request_timeout_ms": 10**23},
            "client.request_timeout_ms: Expected `int` <= 2147483647",
        ),
        ({"send_buffer_bytes": 2**31}, "client.send_buffer_bytes: Expected `int` <= 2147483647"),
        ({"socks5_proxy": "hunter2"}, "client.socks5_proxy: write socks5://host:1080"),
        ({"proxy_url": "socks4://hunter2:1080"}, "client.proxy_url: write socks5://host"),
        ({"proxy_url": "http://u:hunter2@p"}, "client.proxy_url: write socks5://host:1080"),
        ({"proxy_url": "http://p:99999"}, "client.proxy_url: write socks5://host:1080"),
        ({"ssl_ciphers": "HIGH"}, "client.ssl_ciphers: it cannot be used: kafka-python ignores it"),
        ({"ssl_crlfile": "/dev/null"}, "client.ssl_crlfile: it cannot be used"),
        (
            {**PLAIN, "sasl_plain_password_file": "/dev/null"},
            "client.sasl_plain_password: sasl_plain_password_file is there too: give one of them",
        ),
        ({**OAUTH, "sasl_oauth_token_url": "https://h:99999/t"}, "must be like https://host/token"),
        ({**OAUTH, "sasl_oauth_token_url": "https://h/a token"}, "must be like https://host/token"),
        ({"api_version": ["2", "5"]}, "client.api_version: Expected `int`, got `str`"),
        (
            {"request_timeout_ms": "3000"},
            "client.request_timeout_ms: Expected `int | null`, got `str`",
        ),
        ({"request_timeout_ms": True}, "write a number without a unit"),
        (
            {"ssl_check_hostname": "no"},
            "client.ssl_check_hostname: Expected `bool | null`, got `str`; write true or false",
        ),
        (
            {**PLAIN, "sasl_plain_password": 12345},
            "client.sasl_plain_password: Expected `str | null`, got `int`; write it in quotes",
        ),
        ({"ssl_password_file": 55}, "client.ssl_password_file: it must be a path"),
        ({"ssl_password_file": "/no/such"}, "client.ssl_password_file: cannot read the file: No"),
        (
            {"security_protocol": "SSL", "ssl_cafile": "/no/such.pem"},
            "cafile: cannot read the file",
        ),
        (
            {"security_protocol": "SASL_SSL"},
            "client.sasl_mechanism: it is missing; the security protocol SASL_SSL needs it",
        ),
        (
            {**PLAIN, "security_protocol": "SSL"},
            "client.sasl_mechanism: it has no effect with the security protocol SSL; set SASL",
        ),
        (
            {"sasl_mechanism": "PLAIN"},
            "has no effect with the security protocol PLAINTEXT",
        ),
        ({"ssl_check_hostname": False}, "client.ssl_check_hostname: it has no effect with"),
        (
            {**PLAIN, "sasl_plain_username": None},
            "client.sasl_plain_username: it is missing; PLAIN needs it",
        ),
        (
            {"security_protocol": "SSL", "ssl_keyfile": __file__},
            "client.ssl_certfile: it is missing; the key of ssl_keyfile needs it",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_option(client: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        options(**client)
    text = str(raised.value)
    assert message in text
    assert text.startswith(("configuration: kafka.client.", "configuration: kafka.client: "))
    assert "?." not in text
    assert text.count("\n") == 0
    assert "hunter2" not in text
    assert "12345" not in text


@pytest.mark.parametrize(
    "url", ["socks5://p:1080", "socks5h://u:hunter2@[::1]:1080", "http://proxy.example.org:3128/"]
)
def test_the_proxies_of_kafka_python_are_taken(url: str) -> None:
    assert options(socks5_proxy=url)["socks5_proxy"] == url
    assert options(proxy_url=url)["proxy_url"] == url


def test_kafka_python_ignores_ciphers() -> None:
    """Once it does not, the option can be taken."""
    assert "ssl_ciphers" not in KafkaSSLTransport.DEFAULT_CONFIG


def test_kafka_python_fails_at_a_revocation_list(tmp_path: Path) -> None:
    """Once it does not, the option can be taken."""
    file = tmp_path / "list.pem"
    file.write_text("")
    with pytest.raises(TypeError, match="crl"):
        KafkaSSLTransport(None, None, ssl_crlfile=str(file))
