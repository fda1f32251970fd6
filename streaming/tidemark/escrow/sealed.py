"""What a record of an escrow topic holds: one record batch as its leader sent it, and its label.

The label is the record's key: what is held can be listed without opening a batch. With a key file
the batch is encrypted by AES-256-GCM, and the label is authenticated with it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from kafka import TopicPartition
from kafka import errors as kafka_errors
from msgspec import Struct

from tidemark.core.errors import ClusterError, ConfigError
from tidemark.kafka.client import explain, make_consumer
from tidemark.settings import Settings

_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
MAKE_KEY: Final = "openssl rand -base64 32"

# Records that are unpacked at once.
MAX_RECORDS: Final = 32
POLL_MS: Final = 200
# Topics that give nothing for so long before their end cannot be read. For the newest records of
# all of them nobody waits as long.
SILENT_SECONDS: Final = 15.0
NEWEST_SECONDS: Final = 2.0

# A partition of which copies are kept: cluster, topic and number.
Key = tuple[str, str, int]


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

    @property
    def place(self) -> Key:
        return self.cluster, self.topic, self.partition


_decoder: Final = msgspec.json.Decoder(Label)


def read_label(key: bytes | None) -> Label | None:
    """None: the record is none of the escrow's."""
    try:
        return _decoder.decode(key or b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Seal:
    """Encrypts with the key of a file; without one, batches stay as they are."""

    def __init__(self, key_file: str | None) -> None:
        """Raises ConfigError for a file without a key, ModuleNotFoundError without the library."""
        self.name: str | None = None
        self._cipher: Any = None
        if key_file is not None:
            key = _read_key(key_file)
            self.name = hashlib.sha256(key).hexdigest()[:16]
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(key)

    def close(self, label: Label, batch: bytes) -> tuple[bytes, bytes]:
        """Key and value of the record."""
        key = msgspec.json.encode(msgspec.structs.replace(label, sealed_with=self.name))
        if self._cipher is None:
            return key, batch
        nonce = os.urandom(_NONCE_BYTES)
        return key, nonce + self._cipher.encrypt(nonce, batch, key)

    def open(self, label: Label, key: bytes, value: bytes) -> bytes:
        """The batch. `key`: the record's, of which `label` was read. Raises ConfigError."""
        if label.sealed_with is None:
            return value
        reason = f"encrypted with the key {label.sealed_with}; escrow.key_file " + (
            "is not set" if self.name is None else f"has the key {self.name}"
        )
        if label.sealed_with == self.name:
            reason = "damaged: its encryption does not fit"
            # cryptography's InvalidTag, and ValueError for too few bytes.
            with suppress(Exception):
                return bytes(self._cipher.decrypt(value[:_NONCE_BYTES], value[_NONCE_BYTES:], key))
        raise ConfigError(
            f"{label.topic}-{label.partition} offset {label.start} in escrow: it is {reason}. Set "
            "escrow.key_file to the key that the escrow had then."
        )


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


def stored(settings: Settings, *, newest: bool = False) -> Iterator[tuple[Label, Any]]:
    """What all topics hold now that this user may see, or the newest record of each partition.

    With its label kafka-python's ConsumerRecord; those of another writer are left out. Raises
    ClusterError, also where nothing came for a while.
    """
    consumer = make_consumer(
        settings.kafka, group_id=None, enable_auto_commit=False, max_poll_records=MAX_RECORDS
    )
    try:
        names = [name for name in consumer.topics() if name.startswith(settings.topics.escrow)]
        places = [TopicPartition(n, p) for n in names for p in consumer.partitions_for_topic(n)]
        starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        left = {place for place in places if ends[place] > starts[place]}
        consumer.assign(list(left))
        for place in left:
            consumer.seek(place, ends[place] - 1 if newest else starts[place])
        arrived_at = time.monotonic()
        while left:
            for records in consumer.poll(POLL_MS).values():
                arrived_at = time.monotonic()
                labelled = ((read_label(record.key), record) for record in records)
                yield from ((label, record) for label, record in labelled if label is not None)
            left = {place for place in left if consumer.position(place) < ends[place]}
            if time.monotonic() - arrived_at > (NEWEST_SECONDS if newest else SILENT_SECONDS):
                raise ClusterError(f"no record of {min(left).topic} came. Is a broker down?")
    except kafka_errors.KafkaError as error:
        raise ClusterError(f"cannot read what is in escrow: {explain(error)}.") from None
    finally:
        consumer.close(autocommit=False)
