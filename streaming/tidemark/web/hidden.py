"""Answers of servers without our secrets: many repeat the path or the headers that they were sent.

An error such as `Cannot POST /hooks/<token>` is logged, and shown by `check-config`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

HIDDEN: Final = "(hidden)"
# Shorter words, such as `api` and `alerts`, are no secrets.
MIN_CHARACTERS: Final = 8
# What is left of a secret at the end of a text that was cut.
MIN_BEGINNING: Final = 4


def without_secrets(text: str, url: str, authorization: str | None) -> str:
    """`text`, without the words of the address behind its host and of the Authorization header.

    Of a word that the end of the text cuts, the beginning is hidden too.
    """
    words = {*_words_of_url(url), *_words_of_header(authorization or "")}
    long = sorted((word for word in words if len(word) >= MIN_CHARACTERS), key=len, reverse=True)
    for word in long:
        text = text.replace(word, HIDDEN)
    for word in long:
        for size in range(min(len(word) - 1, len(text)), MIN_BEGINNING - 1, -1):
            if text.endswith(word[:size]):
                text = text[:-size] + HIDDEN
                break
    return text


def _words_of_url(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    for word in re.split(r"[/?&=;:]+", f"{parts.path}?{parts.query}?{user}"):
        yield from (word, unquote(word))


def _words_of_header(value: str) -> Iterator[str]:
    """The credentials; of a user's, in base64, also the password."""
    scheme, _, credentials = value.partition(" ")
    yield credentials or scheme
    yield from credentials.split()
    if scheme.lower() == "basic":
        try:
            yield b64decode(credentials, validate=True).decode().partition(":")[2]
        except ValueError:
            return
