"""What a record of the escrow holds: its label, its batch, and neither with another key."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tidemark.core.errors import ConfigError
from tidemark.escrow.sealed import Label, Seal, read_label

LABEL = Label(cluster="main", topic="orders", partition=3, start=5, end=9, leader_epoch=4)


def key_file(folder: Path, content: bytes | None = None) -> str:
    file = folder / f"key-{os.urandom(4).hex()}"
    file.write_bytes(content if content is not None else base64.b64encode(os.urandom(32)) + b"\n")
    return str(file)


def test_a_batch_comes_back_with_its_label() -> None:
    key, value = Seal(None).close(LABEL, b"batch")
    assert (read_label(key), Seal(None).open(LABEL, key, value), value) == (
        LABEL,
        b"batch",
        b"batch",
    )


def test_an_encrypted_batch_opens_with_its_key_and_label_alone(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    seal = Seal(key_file(tmp_path))
    key, value = seal.close(LABEL, b"a secret batch")
    assert b"secret" not in value
    assert seal.close(LABEL, b"a secret batch")[1] != value, "no nonce is used twice"
    label = replace(LABEL, sealed_with=seal.name)
    assert seal.open(label, key, value) == b"a secret batch"
    for other, reason in ((Seal(None), "is not set"), (Seal(key_file(tmp_path)), "has the key")):
        with pytest.raises(ConfigError, match=reason):
            other.open(label, key, value)
    forged = key.replace(b'"start":5', b'"start":6')
    for wrong_key, wrong in (
        (key, value[:-1] + bytes([value[-1] ^ 1])),
        (forged, value),
        (key, b""),
    ):
        with pytest.raises(ConfigError, match="damaged"):
            seal.open(label, wrong_key, wrong)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 44, base64.b64encode(b"x" * 31)])
def test_a_file_without_a_key_is_named_with_the_cure(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ConfigError, match=r"escrow\.key_file: .*32 bytes.*openssl rand"):
        Seal(key_file(tmp_path, content))
    with pytest.raises(ConfigError, match=r"cannot read .*: No such file"):
        Seal(str(tmp_path / "absent"))


@pytest.mark.parametrize("key", [None, b"", b"{}", b"\xff", b'{"cluster": 1}'])
def test_a_record_of_another_writer_is_none(key: bytes | None) -> None:
    assert read_label(key) is None
