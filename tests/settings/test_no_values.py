"""No message shows a value of a file or a variable, however deep in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.settings.load import refused
from tests.verbs.run import configured, tidemark
from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, load_settings
from tidemark.settings.environment import variables
from tidemark.settings.sources import MAX_DEPTH, parse_yaml

SECRET = "hunter2"
# Refused at load; {} is the secret.
AT_LOAD = [
    (
        "TIDEMARK_CLUSTERS",
        "[{{name: a, bootstrap_servers: ['{}']}}]",
        "clusters[0].bootstrap_servers[0]",
    ),
    ("TIDEMARK_CLUSTERS", "[{{name: a, topics_allow: ['({}']}}]", "clusters[0].topics_allow[0]"),
    (
        "TIDEMARK_CLUSTERS",
        "[{{name: a, topics_allow: ['(?P<{0}>a)(?P<{0}>b)']}}]",
        "clusters[0].topics_allow[0]",
    ),
    ("TIDEMARK_CLUSTERS", "[{{name: a, {}: 1}}]", "clusters[0]: unknown field"),
    ("TIDEMARK_CLUSTERS", "[{{name: {0}}}, {{name: {0}}}]", "clusters[1]: its name"),
    ("TIDEMARK_CLUSTERS", "[{{{0}: 1, {0}: 2}}]", "a key occurs twice"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, url: '{}://x'}}]", "notify.receivers[0].url"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: {}}}]", "notify.receivers[0]: it needs"),
    (
        "TIDEMARK_NOTIFY_RECEIVERS",
        "[{{name: r, url: 'http://r/', alerts: ['{}']}}]",
        "notify.receivers[0].alerts[0]",
    ),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, url:http://r/{}}}]", "a colon and a space after it"),
    ("TIDEMARK_NOTIFY_RECEIVERS", "[{{name: r, severities: ['{}']}}]", "severities[0]: it must be"),
    ("TIDEMARK_NOTIFY_MAINTENANCE", "[{{name: m, start: '{}', end: b}}]", "start and end must be"),
    ("TIDEMARK_NOTIFY_MAINTENANCE", "[{{name: '{}', start: a, end: b}}]", "start and end must be"),
    (
        "TIDEMARK_NOTIFY_MAINTENANCE",
        "[{{name: m, start: a, end: b, time_zone: '{}'}}]",
        "no such time_zone",
    ),
    ("TIDEMARK_STREAM_SPARK", "{{driver.password.{}: x}}", "write the whole name"),
    ("TIDEMARK_DETECT_OVERRIDES", "[{{topics: '({}'}}]", "detect.overrides[0].topics"),
    ("TIDEMARK_DETECT_DISABLED", "ISR_CHANGE,{}", "detect.disabled[1]: no such detector"),
    ("TIDEMARK_NOTIFY_EXTERNAL_URL", "{}", "notify.external_url"),
    ("TIDEMARK_COLLECT_LISTEN", "user:{}", "collect.listen: it is not host:port"),
]
# Refused with a file, or by the client options.
AT_FILES = [
    (
        {"TIDEMARK_KAFKA_CLIENT": "{{security_protocol: SASL_SSL, {}: 1}}"},
        "kafka.client: unknown field",
    ),
    (
        {"TIDEMARK_KAFKA_CLIENT": "{{security_protocol: SSL, ssl_cafile: '/{}'}}"},
        "kafka.client.ssl_cafile: cannot read",
    ),
    (
        {
            "TIDEMARK_CLUSTERS": (
                "[{{name: east, jmx: [{{broker: 1, url: 'http://k:1', ca_file: 'Bearer {}'}}]}}]"
            )
        },
        "cluster `east`: jmx of broker 1: cannot read ca_file: No such file",
    ),
    (
        {
            "TIDEMARK_NOTIFY_RECEIVERS": (
                "[{{name: pager, url: 'http://r/', secret_file: 'whsec_{}'}}]"
            )
        },
        "receiver `pager`: secret_file: cannot read the file",
    ),
    ({"TIDEMARK_STREAM_JARS": "{}"}, "stream.jars: it is no folder"),
    ({"TIDEMARK_EXPORT_WEB_CONFIG_FILE": "/run/{}"}, "cannot read the web configuration"),
    (
        {"TIDEMARK_COLLECT_WATCHDOG_URL_FILE": "http://r.example.org/{}"},
        "collect.watchdog_url_file: cannot read",
    ),
    *(
        (
            {
                "TIDEMARK_COLLECT_WATCHDOG_URL": "http://r.example.org/",
                f"TIDEMARK_COLLECT_{name.upper()}": "Bearer  {}",
            },
            f"collect.{name}: cannot read the file: No such file",
        )
        for name in ("watchdog_authorization_file", "watchdog_ca_file")
    ),
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


@pytest.mark.parametrize(
    ("name", "text", "says"), [each for each in AT_LOAD if each[1].startswith(("[", "{"))]
)
def test_nor_does_one_about_the_same_in_a_file(
    name: str, text: str, says: str, tmp_path: Path
) -> None:
    path = next(path for variable, path, _ in variables() if variable == name)
    given = "".join(f"{{{section}: " for section in path) + text.format(SECRET) + "}" * len(path)
    message = refused(given, tmp_path)
    assert SECRET not in message
    assert says in message


@pytest.mark.parametrize(("environ", "says"), AT_FILES)
def test_a_message_about_a_file_shows_no_part_of_a_variable(
    environ: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in environ.items():
        monkeypatch.setenv(name, text.format(SECRET))
    shown = tidemark("check-config", code=2).err
    assert SECRET not in shown
    assert says in shown


@pytest.mark.parametrize("is_variable", [True, False])
@pytest.mark.parametrize("between", [":", "=", " ", "/", ""])
def test_a_key_ends_before_its_value(
    is_variable: bool, between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML reads a colon without a space as a part of the key, and a key may lack its colon."""
    client = f"{{security_protocol: SASL_SSL, sasl_plain_password{between}{SECRET}}}"
    if is_variable:
        monkeypatch.setenv("TIDEMARK_KAFKA_CLIENT", client)
    text = "{}" if is_variable else f"kafka: {{client: {client}}}"
    shown = configured(tmp_path, text, "check-config", code=2).err
    cure = " `sasl_plain_password`; write a colon and a space after it"
    cure = cure if between else "; did you mean `sasl_plain_password`?"
    assert f"kafka.client: unknown field{cure}" in shown
    assert SECRET not in shown


# Whatever a file or a variable holds, the answer is settings or one line.


NAMES = sorted({word for name, path, _ in variables(Settings) for word in (*path, name)})
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.dates()
)
VALUES = st.recursive(
    SCALARS | st.sampled_from([".*", "local[4]", "a:1", "http://a/", "gzip"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
SECTIONS = list(Settings.__struct_fields__)
few = settings(max_examples=60, deadline=None)


def message(call: Callable[[], object]) -> str:
    """The text of a ConfigError, which is the only error allowed; empty without one."""
    try:
        call()
    except ConfigError as error:
        return str(error)
    return ""


# Deep and recursive documents end.
@example("[" * 5_000)
@example("{a: " * 5_000)
@example("&a [*a]")
@example("x: &a [1, 1]\n" + "y: &b [" + "*a," * 9 + "*a]")
@few
@given(st.text(alphabet="{}[]:-&*!<%|>'\"#, \n\t\\abc019.~é\x00", max_size=60))
def test_any_text_is_a_document_or_one_line(text: str) -> None:
    assert message(lambda: parse_yaml(text, "file")).count("\n") == 0


@few
@given(st.dictionaries(st.sampled_from(SECTIONS), VALUES, max_size=4))
def test_any_document_is_settings_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    assert message(lambda: load_settings(path, {})).count("\n") == 0


@few
@given(
    st.sampled_from([name for name, _, _ in variables(Settings)]),
    st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=8),
)
def test_no_message_shows_the_value_of_a_variable(name: str, text: str) -> None:
    shown = message(lambda: load_settings(None, {name: text}))
    assert text not in shown


def test_brackets_in_brackets_end_at_the_bound() -> None:
    """Not at the end of the text, where PyYAML's time grows with the square of the depth."""
    parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, "file")
    began = time.thread_time()
    shown = message(lambda: parse_yaml("{a: [" * 100_000, "file"))
    assert "nested too deeply" in shown
    assert time.thread_time() - began < 0.5


@pytest.mark.parametrize("text", ['"\\ud800": 1', 'clusters: [{name: "\\udfff"}]'])
def test_half_a_character_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    assert "half of a character" in message(lambda: load_settings(path, {}))


def test_aliases_that_stand_for_billions_are_refused() -> None:
    lines = ["a0: &a0 [1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(ConfigError, match="aliases"):
        parse_yaml("\n".join(lines), "file")
