"""What a record of an escrow topic holds: one record batch as its leader sent it, and its label.

The label is the record's key: what is held can be listed without opening a batch. With a key file
the batch is encrypted by AES-256-GCM, and the label is authenticated with it.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tidemark.core.errors import ConfigError

_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
MAKE_KEY: Final = "openssl rand -base64 32"


class SealError(Exception):
    """A record that is none of the escrow's, or whose batch cannot be opened; the text says why."""


class Label(Struct, kw_only=True, omit_defaults=True, frozen=True):
    """Offsets [start, end) of one partition. `sealed_with`: the name of the key; None: plain."""

    v: int = 1
    cluster: str
    topic: str
    partition: int
    topic_id: str | None = None
    start: int
    end: int
    leader_epoch: int | None = None
    sealed_with: str | None = None


_decoder: Final = msgspec.json.Decoder(Label)


def read_label(key: bytes | None) -> Label:
    """Raises SealError."""
    try:
        return _decoder.decode(key or b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SealError("a record without a label of the escrow") from None


class Seal:
    """Encrypts with the key of a file; without one, batches stay as they are."""

    def __init__(self, key_file: str | None) -> None:
        """Raises ConfigError for a file without a key, and without the library."""
        self.name: str | None = None
        self._cipher: Any = None
        if key_file is not None:
            key = _read_key(key_file)
            self.name = hashlib.sha256(key).hexdigest()[:16]
            self._cipher = _aes_gcm()(key)

    def close(self, label: Label, batch: bytes) -> tuple[bytes, bytes]:
        """Key and value of the record."""
        key = msgspec.json.encode(msgspec.structs.replace(label, sealed_with=self.name))
        if self._cipher is None:
            return key, batch
        nonce = os.urandom(_NONCE_BYTES)
        return key, nonce + self._cipher.encrypt(nonce, batch, key)

    def open(self, key: bytes, value: bytes) -> bytes:
        """The batch. Raises SealError."""
        name = read_label(key).sealed_with
        if name is None:
            return value
        if name != self.name:
            raise SealError(
                f"it is encrypted with the key {name}; escrow.key_file "
                + ("is not set" if self.name is None else f"has the key {self.name}")
            )
        try:
            return bytes(self._cipher.decrypt(value[:_NONCE_BYTES], value[_NONCE_BYTES:], key))
        except Exception:
            # cryptography's InvalidTag, and ValueError for too few bytes.
            raise SealError("it is damaged: its encryption does not fit") from None


def _read_key(key_file: str) -> bytes:
    try:
        key = base64.b64decode(Path(key_file).read_bytes().strip(), validate=True)
    except OSError as error:
        raise ConfigError(f"escrow.key_file: cannot read {key_file}: {error.strerror}.") from None
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ConfigError(
            f"escrow.key_file: {key_file} does not hold {_KEY_BYTES} bytes in base64; make one: "
            f"{MAKE_KEY}"
        )
    return key


def _aes_gcm() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise ConfigError(
            "escrow.key_file needs the package cryptography: pip install cryptography, or install "
            "the extra `escrow`."
        ) from None
    return AESGCM
