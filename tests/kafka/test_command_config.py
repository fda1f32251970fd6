"""Kafka's properties files: read as Java reads them, never weaker than they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.verbs.run import tidemark
from tidemark.core.errors import ConfigError
from tidemark.kafka.command_config import client_of, parse_properties, read_command_config
from tidemark.kafka.options import client_options
from tidemark.settings import Connection
from tidemark.stream.launch import as_properties

SCRAM = """\
# admin.properties
security.protocol=SASL_SSL
sasl.mechanism = SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="tidemark" \\
    password="hun\\\\"ter=2;";
request.timeout.ms: 5000
group.id=ignored
"""


def test_a_file_of_kafkas_tools_is_read(tmp_path: Path) -> None:
    path = tmp_path / "admin.properties"
    path.write_text(SCRAM)
    client = read_command_config(path)
    assert client == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "tidemark",
        "sasl_plain_password": 'hun"ter=2;',
        "request_timeout_ms": 5000,
    }
    assert client_options(Connection(client=client))["sasl_mechanism"] == "SCRAM-SHA-512"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        (" a : b ", {"a": "b "}),
        ("a b c", {"a": "b c"}),
        ("a\\ b=c\\u00e9\\n", {"a b": "cé\n"}),
        ("! no\n# no\na=1\\\n   2\r\nb", {"a": "12", "b": ""}),
        ("a=\\\\\nb=2", {"a": "\\", "b": "2"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_properties_are_those_of_java(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_mutual_tls_and_tokens() -> None:
    client = client_of(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": "/ca.pem",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.location": "/pair.pem",
            "ssl.keystore.type": "PEM",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert (client["ssl_cafile"], client["ssl_certfile"]) == ("/ca.pem", "/pair.pem")
    assert client["ssl_check_hostname"] is False
    token = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "file:///t"}
    assert client_of(token)["sasl_oauth_token_file"] == "/t"


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"security.protocl": "SSL"}, "did you mean `security.protocol`?"),
        ({"secruity.protocol": "SSL"}, "`secruity.protocol` is no option"),
        ({"secruity.protocol": "SSL"}, "did you mean `security.protocol`?"),
        ({"security_protocol": "SASL_SSL"}, "did you mean `security.protocol`?"),
        ({"Security.Protocol": "SASL_SSL"}, "did you mean `security.protocol`?"),
        ({"sals.mechanism": "PLAIN"}, "did you mean `sasl.mechanism`?"),
        ({"ssl-truststore-location": "/ca.pem"}, "did you mean `ssl.truststore.location`?"),
        ({"ssl.engine.factory.clas": "x"}, "did you mean `ssl.engine.factory.class`?"),
        ({"sasl.login.class": "x"}, "`sasl.login.class` is not supported"),
        ({"ssl.truststore.location": "/a.jks"}, "must be a PEM file"),
        ({"sasl.jaas.config": 'M required username="u" password="hunter2"'}, "semicolon"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "sasl_oauth_token_url"),
        (
            {
                "sasl.mechanism": "GSSAPI",
                "sasl.jaas.config": 'K required useKeyTab=true keyTab="/k";',
            },
            "kinit -kt",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(properties: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError) as error:
        client_of(properties)
    assert says in str(error.value)
    assert str(error.value).startswith("--command-config: ")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("value", ["5s", "-1", "9" * 11, "9" * 5000])
def test_a_number_is_checked_as_one_of_the_configuration(tmp_path: Path, value: str) -> None:
    path = tmp_path / "admin.properties"
    path.write_text(f"request.timeout.ms={value}")
    message = "^--command-config: request.timeout.ms: Expected `int | null`, got `str`; write a num"
    with pytest.raises(ConfigError, match=message.replace("|", r"\|")):
        client_options(Connection(client=read_command_config(path)))


def test_options_that_are_not_of_security_are_ignored() -> None:
    """Kafka's own, and those that interceptors prefix."""
    names = (
        *("bootstrap.servers", "group.id", "auto.offset.reset", "acks", "key.deserializer"),
        *(
            "client.rack",
            "isolation.level",
            "socket.connection.setup.timeout.ms",
            "schema.registry.url",
        ),
        *("confluent.monitoring.interceptor.security.protocol", "metadata.recovery.strategy"),
    )
    assert client_of(dict.fromkeys(names, "x")) == {}


def test_a_verb_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "admin.properties"
    path.write_text("security.protocol=SASL_SSLL\n")
    command = ["--bootstrap", "127.0.0.1:1", "--command-config", str(path)]
    for verb in (["inspect", "t"], ["safe-to-stop", "1"], ["audit"]):
        assert "did you mean `SASL_SSL`?" in tidemark(*verb, *command, code=2).err
    assert "cannot read /no" in tidemark("ack", "--command-config", "/no", code=2).err


@settings(max_examples=100)
@given(st.dictionaries(st.text(min_size=1), st.text(max_size=9), max_size=3))
@example({"a": "x\\"})
def test_what_the_stream_writes_is_read_again(conf: dict[str, str]) -> None:
    assert parse_properties(as_properties(conf)) == conf


@settings(max_examples=100)
@given(st.text(alphabet='abs.=: \\\n\r\t#!u0;"é', max_size=60))
def test_any_text_is_properties(text: str) -> None:
    try:
        client_of(parse_properties(text))
    except ConfigError as error:
        message = str(error)
        assert message
