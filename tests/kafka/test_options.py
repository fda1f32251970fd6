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
    found = options(api_version=[2, 5], client_id=None)
    assert found == {"bootstrap_servers": ["a:1"], "api_version": (2, 5)}


@pytest.mark.parametrize(
    ("client", "message"),
    [
        ({"security_protocol": "SASL_SSLL"}, "client.security_protocol must be one of PLAINTEXT, "),
        ({"security_protocol": "SASL_SSLL"}, "did you mean `SASL_SSL`?"),
        ({"security_protocol": "ssl"}, "did you mean `SSL`?"),
        ({**PLAIN, "sasl_mechanism": "SCRAM-SHA-521"}, "did you mean `SCRAM-SHA-512`?"),
        ({**PLAIN, "sasl_mechanism": 5}, "client.sasl_mechanism must be one of PLAIN, "),
        (
            {"security_protocoll": "SSL"},
            "option of kafka-python `security_protocoll`",
        ),
        ({"security_protocoll": "SSL"}, "did you mean `security_protocol`?"),
        (
            {"key_serializer": "x"},
            "unknown option of kafka-python; remove what docs/",
        ),
        ({"api_version": 2.5}, "client.api_version must be a list of numbers, such as [2, 5]"),
        ({"api_version": [-1, 5]}, "client.api_version must be a list of numbers"),
        ({"api_version": [True, 5]}, "client.api_version must be a list of numbers"),
        (
            {"request_timeout_ms": 10**23},
            "client.request_timeout_ms must be a whole number above 0",
        ),
        ({"send_buffer_bytes": 2**31}, "at most 2147483647"),
        ({"socks5_proxy": "hunter2"}, "client.socks5_proxy must be like socks5://host:1080"),
        ({"proxy_url": "socks4://hunter2:1080"}, "client.proxy_url must be like socks5://host"),
        ({"proxy_url": "http://u:hunter2@p"}, "client.proxy_url must be like socks5://host:1080"),
        ({"proxy_url": "http://p:99999"}, "client.proxy_url must be like socks5://host:1080"),
        ({"ssl_ciphers": "HIGH"}, "client.ssl_ciphers cannot be used: kafka-python ignores it"),
        ({"ssl_crlfile": "/dev/null"}, "client.ssl_crlfile cannot be used"),
        (
            {**PLAIN, "sasl_plain_password_file": "/dev/null"},
            "client.sasl_plain_password and kafka.client.sasl_plain_password_file: give one",
        ),
        ({**OAUTH, "sasl_oauth_token_url": "https://h:99999/t"}, "must be like https://host/token"),
        ({**OAUTH, "sasl_oauth_token_url": "https://h/a token"}, "must be like https://host/token"),
        ({"api_version": ["2", "5"]}, "client.api_version must be a list of numbers"),
        ({"request_timeout_ms": "3000"}, "client.request_timeout_ms must be a whole number"),
        ({"request_timeout_ms": True}, "client.request_timeout_ms must be a whole number"),
        ({"ssl_check_hostname": "no"}, "client.ssl_check_hostname must be true or false"),
        ({**PLAIN, "sasl_plain_password": 12345}, "client.sasl_plain_password must be text"),
        ({"ssl_password_file": 55}, "client.ssl_password_file must be a path"),
        ({"ssl_password_file": "/no/such"}, "client.ssl_password_file: cannot read the file: No"),
        (
            {"security_protocol": "SSL", "ssl_cafile": "/no/such.pem"},
            "cafile: cannot read the file",
        ),
        ({"security_protocol": "SASL_SSL"}, "SASL_SSL needs kafka.client.sasl_mechanism"),
        ({**PLAIN, "security_protocol": "SSL"}, "client.sasl_mechanism has no effect with"),
        (
            {"sasl_mechanism": "PLAIN"},
            "has no effect with kafka.client.security_protocol PLAINTEXT",
        ),
        ({"ssl_check_hostname": False}, "client.ssl_check_hostname has no effect with"),
        (
            {**PLAIN, "sasl_plain_username": None},
            "PLAIN needs kafka.client.sasl_plain_username (or ",
        ),
        (
            {"security_protocol": "SSL", "ssl_keyfile": __file__},
            "needs kafka.client.ssl_certfile",
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
