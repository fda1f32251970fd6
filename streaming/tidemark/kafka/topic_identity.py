"""Whether a topic is the one that was read before: created again, it begins at offset 0.

Offsets that were kept mean nothing in the new topic. Its records below them would never be read.
"""

from __future__ import annotations

from collections.abc import Mapping


def is_another_topic(
    known_id: str | None,
    topic_id: str | None,
    positions: Mapping[int, int],
    ends: Mapping[int, int],
) -> bool:
    """Whether a topic was deleted and created again since the offsets `positions` were kept.

    By the topic's ids (KIP-516); where one is not known, by a partition that `ends` below its
    position. Without ids, one that has grown beyond all positions cannot be told from the first.
    """
    if known_id is not None and topic_id is not None:
        return known_id != topic_id
    return any(ends.get(partition, offset) < offset for partition, offset in positions.items())
