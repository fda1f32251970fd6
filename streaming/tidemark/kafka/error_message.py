"""The line of an error. One of the configuration has no value of a variable."""

from __future__ import annotations

import os
from typing import Final

from tidemark.core.errors import ConfigError, TidemarkError
from tidemark.kafka.options import CHOICES, KNOWN
from tidemark.settings.hidden_values import without_values
from tidemark.settings.sources import given_variables

_WORDS: Final = frozenset({*KNOWN, *(word for choice in CHOICES.values() for word in choice)})


def error_message(error: TidemarkError) -> str:
    """The text of an error for standard error. Values of variables may be secrets."""
    given = given_variables(os.environ)
    if not isinstance(error, ConfigError) or not given:
        return str(error)
    return without_values(str(error), given, _WORDS, names_are_public=True)
