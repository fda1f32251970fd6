"""Secrets of files: each connection of kafka-python logs in with what its file holds then.

The library takes a password once, for the life of a client. Certificates and keys it reads from
their files for each connection itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import get_sasl_mechanism, register_sasl_mechanism

from tidemark.settings.files import read_text

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class FileText(str):
    """The text that a file held; called, what it holds now. A pipe gives its text once."""

    __slots__ = ("read",)
    read: Callable[[], str]

    @classmethod
    def of(cls, path: str) -> FileText:
        """Raises OSError."""
        found = cls(read_text(path))
        is_file = Path(path).is_file()
        found.read = partial(read_text, path) if is_file else partial(str, found)
        return found

    def __call__(self) -> str:
        """OpenSSL too calls the password of a key. Raises SaslAuthenticationFailedError."""
        try:
            return self.read()
        except OSError as error:
            raise SaslAuthenticationFailedError(
                f"cannot read the file of a secret again: {error.strerror}"
            ) from None


@cache
def log_in_with_files() -> None:
    """For all clients of this process: the library has no other hook for a password."""
    for name in MECHANISMS:
        mechanism = partial(_with_files_read, get_sasl_mechanism(name))
        register_sasl_mechanism(name, mechanism, overwrite=True)


def _with_files_read(mechanism: Any, **options: Any) -> Any:
    """A mechanism of kafka-python for one connection."""
    return mechanism(**{k: v() if isinstance(v, FileText) else v for k, v in options.items()})
