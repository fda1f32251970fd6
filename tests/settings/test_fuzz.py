"""Whatever a file or a variable holds, the answer is settings or one line."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidemark.core.errors import ConfigError
from tidemark.settings import Settings, load_settings
from tidemark.settings.environment import variables
from tidemark.settings.sources import MAX_DEPTH, parse_yaml

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
