"""No message shows a value of a variable, however deep in it, and none loses its words for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.verbs.run import tidemark
from tidemark.core.errors import ConfigError
from tidemark.settings import load_settings
from tidemark.settings.hidden_values import Variable, without_values

SECRET = "hunter2"
# Refused at load; {} is the secret.
AT_LOAD = [
    ("TIDEMARK_CLUSTERS", "[{{name: a, bootstrap_servers: ['{}']}}]", "a value of"),
    ("TIDEMARK_CLUSTERS", "[{{name: a, topics_allow: ['({}']}}]", "a value of"),
    ("TIDEMARK_CLUSTERS", "[{{name: a, topics_allow: ['(?P<{0}>a)(?P<{0}>b)']}}]", "a value of"),
    ("TIDEMARK_CLUSTERS", "[{{name: a, {}: 1}}]", "a key of"),
    ("TIDEMARK_CLUSTERS", "[{{name: {0}}}, {{name: {0}}}]", "a value of"),
    ("TIDEMARK_CLUSTERS", "[{{{0}: 1, {0}: 2}}]", "a value of"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, url: '{}://x'}}]", "a value of"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: {}}}]", "a value of"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, url: 'http://r/', alerts: ['{}']}}]", "a value of"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, url:http://r/{}}}]", "after the colon"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, severities: ['{}']}}]", "TIDEMARK_NOTIFY"),
    ("TIDEMARK_NOTIFY_MAINTENANCE", "[{{name: m, start: '{}', end: b}}]", "a value of"),
    ("TIDEMARK_NOTIFY_MAINTENANCE", "[{{name: '{}', start: a, end: b}}]", "a value of"),
    (
        "TIDEMARK_NOTIFY_MAINTENANCE",
        "[{{name: m, start: a, end: b, time_zone: '{}'}}]",
        "a value of",
    ),
    ("TIDEMARK_STREAM_SPARK", "{{driver.password.{}: x}}", "a key of"),
    ("TIDEMARK_DETECT_OVERRIDES", "[{{topics: '({}'}}]", "a value of"),
    ("TIDEMARK_DETECT_DISABLED", "ISR_CHANGE,{}", "the value of"),
    ("TIDEMARK_NOTIFY_EXTERNAL_URL", "{}", "notify.external_url"),
    ("TIDEMARK_COLLECT_LISTEN", "user:{}", "the value of"),
]
# Refused with a file, or by the client options.
AT_FILES = [
    ("TIDEMARK_KAFKA_CLIENT", "{{security_protocol: SASL_SSL, {}: 1}}", "a key of"),
    ("TIDEMARK_KAFKA_CLIENT", "{{security_protocol: SSL, ssl_cafile: '/{}'}}", "a value of"),
    (
        "TIDEMARK_CLUSTERS",
        "[{{name: east, jmx: [{{broker: 1, url: 'http://k:1', ca_file: 'Bearer {}'}}]}}]",
        "cluster `east`: jmx of broker 1: cannot read ca_file a value of",
    ),
    (
        "TIDEMARK_NOTIFY_RECEIVERS",
        "[{{name: pager, url: 'http://r/', secret_file: 'whsec_{}'}}]",
        "receiver `pager`: cannot read secret_file a value of",
    ),
    ("TIDEMARK_STREAM_JARS", "{}", "stream.jars: the value of"),
    ("TIDEMARK_EXPORT_WEB_CONFIG_FILE", "/run/{}", "web configuration the value of"),
    ("TIDEMARK_COLLECT_WATCHDOG_URL_FILE", "http://r.example.org/{}", "the value of"),
]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TIDEMARK_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(("name", "text", "says"), AT_LOAD)
def test_a_message_at_load_shows_no_part_of_a_variable(name: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as failed:
        load_settings(None, {name: text.format(SECRET)})
    assert SECRET not in str(failed.value)
    assert says in str(failed.value) and name in str(failed.value)


@pytest.mark.parametrize(("name", "text", "says"), AT_FILES)
def test_a_message_about_a_file_shows_no_part_of_a_variable(
    name: str, text: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, text.format(SECRET))
    shown = tidemark("check-config", code=2).err
    assert SECRET not in shown
    assert says in shown and name in shown


@pytest.mark.parametrize("name", ["WATCHDOG_AUTHORIZATION_FILE", "WATCHDOG_CA_FILE"])
def test_a_secret_in_place_of_its_file_is_not_shown(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_COLLECT_WATCHDOG_URL", "http://r.example.org/")
    monkeypatch.setenv(f"TIDEMARK_COLLECT_{name}", f"Bearer  {SECRET}")
    shown = tidemark("check-config", code=2).err
    assert f"the value of TIDEMARK_COLLECT_{name}: No such file" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("is_variable", [True, False])
def test_a_key_ends_at_a_colon(
    is_variable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML reads a colon without a space as a part of the key."""
    client = f"{{security_protocol: SASL_SSL, sasl_plain_password:{SECRET}}}"
    if is_variable:
        monkeypatch.setenv("TIDEMARK_KAFKA_CLIENT", client)
    path = tmp_path / "c.yaml"
    path.write_text("{}" if is_variable else f"kafka: {{client: {client}}}", encoding="utf-8")
    shown = tidemark("check-config", "--config", str(path), code=2).err
    assert "client.sasl_plain_password is not an option" in shown
    assert "a space after the colon" in shown
    assert SECRET not in shown


def test_words_of_the_message_are_kept() -> None:
    """A value that is short, a number or an option's name does not take the message apart."""
    text = "{name: a, bootstrap_servers: [k:9092], count: 9092, value: TIDEMARK_X, is: is}"
    given = [Variable("TIDEMARK_X", text, is_structured=True)]
    message = "cluster `a` is wrong: `name`: bootstrap_servers of `k:9092` is 9092."
    assert without_values(message, given) == (
        "cluster a value of TIDEMARK_X is wrong: `name`: "
        "bootstrap_servers of a value of TIDEMARK_X is 9092."
    )
    assert without_values(message, given, names_are_public=True).startswith("cluster `a` is")
    assert without_values("a\n b", []) == "a b"


def test_a_part_in_quotes_and_a_part_of_a_word_are_hidden() -> None:
    given = [Variable("TIDEMARK_X", "hunter2-secret,abcd", is_structured=False)]
    for message in ("begins with `hunter2-`", "x/hunter2-secret/y", "`hunter2-secret`", "(abcd)"):
        shown = without_values(message, given)
        assert "hunter2" not in shown and "abcd" not in shown
        assert "the value of TIDEMARK_X" in shown
    assert without_values("abcdef", given) == "abcdef"
