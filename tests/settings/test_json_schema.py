"""The schema for editors accepts what Tidemark accepts, and is the one that is committed."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
import yaml

from tests.config_schema import CHART, FILE, REFERENCE, chart_schema, configuration_schema
from tests.conftest import ROOT
from tests.verbs.run import tidemark
from tidemark.settings import Settings

SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_committed_file_is_generated() -> None:
    assert json.loads(json.dumps(configuration_schema())) == SCHEMA
    assert CHART.read_text(encoding="utf-8") == chart_schema()


def test_it_is_a_schema_and_the_verb_prints_it() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(tidemark("check-config", "--schema").out) == SCHEMA


def examples() -> list[Any]:
    """The configurations in the documents, and those that are deployed."""
    texts = [REFERENCE.read_text(encoding="utf-8")]
    for path in ROOT.glob("docs/*.md"):
        found = re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        texts += [text for text in found if re.match(r"clusters:|kafka:|notify:", text)]
    texts += [path.read_text() for path in ROOT.glob("deploy/compose/config/tidemark*.yaml")]
    return [yaml.safe_load(text) for text in texts]


def test_examples_are_valid() -> None:
    assert len(examples()) >= 4
    for example in examples():
        VALIDATOR.validate(example)


@pytest.mark.parametrize(
    "text",
    [
        "colect: {}",
        "collect: {pass_second: 1}",
        "collect: {pass_seconds: 0}",
        "kafka: {client: {security_protocol: SASL_SSLL}}",
        "kafka: {client: {security.protocol: SSL}}",
        "clusters: [{nam: a}]",
        "topics: {partitions: 100000}",
        "log_format: jsn",
    ],
)
def test_mistakes_are_not(text: str) -> None:
    assert not VALIDATOR.is_valid(yaml.safe_load(text))


def test_options_carry_their_comments() -> None:
    options = [*SCHEMA["properties"].values(), *SCHEMA["$defs"]["Collect"]["properties"].values()]
    assert sum("description" in option for option in options) >= 12
    assert SCHEMA["properties"].keys() == set(Settings.__struct_fields__)
