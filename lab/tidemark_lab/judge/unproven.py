"""Why lost records are in no proven range. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tidemark_lab.brokers.cluster import Place
from tidemark_lab.brokers.load_producer import AcknowledgedRecord
from tidemark_lab.judge.claims import Sampled

NEVER_SAMPLED: Final = "never sampled"
OVERWRITTEN: Final = "overwritten before two reads"
DELETED: Final = "deleted"
NO_EPOCHS: Final = "no epochs"
NO_TOPIC_IDS: Final = "no topic ids"
REASONS: Final = (NEVER_SAMPLED, OVERWRITTEN, DELETED, NO_EPOCHS, NO_TOPIC_IDS)
# Leader epochs came with KIP-101, topic ids with KIP-516.
_EPOCHS: Final = (0, 11)
_TOPIC_IDS: Final = (2, 8)


def reasons(
    records: Iterable[AcknowledgedRecord],
    sampled: Sampled,
    log_starts: Mapping[Place, int],
    faults: Sequence[float],
    version: str,
) -> dict[str, int]:
    """The number of these lost records by reason. `faults`: when each was injected.

    A record was sampled where a high watermark above it was read from a leader between its
    acknowledgement and the next fault.
    """
    number = tuple(int(part) for part in version.split(".")[:2])
    found: Counter[str] = Counter()
    for record in records:
        place = (record.topic, record.partition)
        until = min((at for at in faults if at >= record.acked_at), default=float("inf"))
        covered = any(
            record.acked_at <= at <= until and committed > record.offset
            for at, committed in sampled.get(place, ())
        )
        if not covered:
            found[NEVER_SAMPLED] += 1
        elif log_starts.get(place, 0) > record.offset:
            found[DELETED] += 1
        elif number < _EPOCHS:
            found[NO_EPOCHS] += 1
        elif number < _TOPIC_IDS:
            found[NO_TOPIC_IDS] += 1
        else:
            found[OVERWRITTEN] += 1
    return dict(found)
