"""Secrets of files: each connection of kafka-python logs in with what its file holds then.

The library takes a password once, for the life of a client. Certificates and keys it reads from
their files for each connection itself.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import get_sasl_mechanism, register_sasl_mechanism

from tidemark.settings.files import read_text


class FileText(str):
    """The text that a file held; called, what it holds now."""

    __slots__ = ("path",)
    path: str

    def __call__(self) -> str:
        """OpenSSL too calls the password of a key. Raises SaslAuthenticationFailedError."""
        try:
            return read_text(self.path)
        except OSError as error:
            raise SaslAuthenticationFailedError(
                f"cannot read the file of a secret again: {error.strerror}"
            ) from None


def file_text(path: str) -> str:
    """A FileText; of a pipe, which gives its text once, that text. Raises OSError."""
    found = FileText(read_text(path))
    found.path = path
    return found if Path(path).is_file() else str(found)


@cache
def log_in_with_files() -> None:
    """For all clients of this process: the library has no other hook for a password."""
    for name in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        mechanism = partial(_with_files_read, get_sasl_mechanism(name))
        register_sasl_mechanism(name, mechanism, overwrite=True)


def _with_files_read(mechanism: Any, **options: Any) -> Any:
    """A mechanism of kafka-python for one connection."""
    return mechanism(**{k: v() if isinstance(v, FileText) else v for k, v in options.items()})
