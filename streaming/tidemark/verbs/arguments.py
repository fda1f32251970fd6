"""Types of flags and arguments that several verbs share. A wrong value is one line, exit 2."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import click

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class FiniteRange(click.FloatRange):
    """A number within both bounds. click's own range takes `nan`, which no bound excludes."""

    def __init__(self, minimum: float, maximum: float) -> None:
        super().__init__(minimum, maximum)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


def topic_name(text: str) -> str:
    """The type of a topic's argument: the characters that Kafka allows."""
    if not _TOPIC.fullmatch(text):
        topic, _, partition = text.rpartition("/")
        is_place = _TOPIC.fullmatch(topic) and partition.isdecimal()
        allowed = "a name has letters, digits, `.`, `_` and `-`"
        cure = f"write {topic} {partition}" if is_place else allowed
        # click would drop the text of a ValueError.
        raise click.BadParameter(f"{text!r} is no topic; {cure}.")
    return text
