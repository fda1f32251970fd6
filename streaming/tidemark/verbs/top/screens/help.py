"""The help: keys, what the columns mean, and the limits."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from tidemark.core.text import table
from tidemark.verbs.top.screens.header import MAX_PARTITIONS

KEYS: Final = (
    ("o b p i a e", "overview, brokers, partitions, in-sync changes, alerts, elections; Tab: next"),
    ("up down k j", "move; Page Up and Page Down, Home and End (g G) move further"),
    ("Enter", "open the selected partition: replicas, logs, alerts, changes; Esc: back"),
    ("s r", "sort by the next column; reverse"),
    ("/", "filter by name, state or text; Enter keeps it, Esc removes it"),
    ("Space", "hold the screen; collection goes on"),
    (", . < >", "in a recording: a pass back, a pass on; ten passes back, ten on"),
    ("? q", "this help; quit"),
)
NOTES: Final = (
    "HW: high watermark. LEO: log end offset. lag: records behind the leader's LEO.",
    "in sync: the in-sync set of the newest metadata. ?: unknown, which is never healthy.",
    "safe to stop: whether a partition would be offline, under min ISR or down to a",
    "last copy. As tidemark safe-to-stop says.",
    "late: a pass that began more than 1.2 periods after the one before.",
    "elections and changes are as sampled: two between passes are seen as one.",
    f"Limit: one process on one machine, {MAX_PARTITIONS:,} partitions. It sends no notification",
    "and keeps nothing over a restart; tidemark collect, stream and export do both.",
)


def help_lines() -> list[Text]:
    lines = [Text("keys", "bold"), *map(Text, table(KEYS)), Text(), Text("meaning", "bold")]
    return [*lines, *map(Text, NOTES)]
