"""Keys of a terminal, from the bytes that it sends."""

from __future__ import annotations

import re
from typing import Final

_SEQUENCES: Final = {
    "[A": "up",
    "OA": "up",
    "[B": "down",
    "OB": "down",
    "[C": "right",
    "OC": "right",
    "[D": "left",
    "OD": "left",
    "[5~": "page up",
    "[6~": "page down",
    "[H": "home",
    "OH": "home",
    "[1~": "home",
    "[F": "end",
    "OF": "end",
    "[4~": "end",
}
_CONTROLS: Final = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\b": "backspace",
    "\t": "tab",
}

# After an escape, `[` or `O`, parameters and a final character; any other character by itself.
_KEY: Final = re.compile(r"\x1b([\[O][^@-~]*[@-~]?)?|(.)", re.DOTALL)


def decode_keys(data: bytes) -> list[str]:
    """The keys in one read: each a printable character, or a name such as `page up`.

    An unknown sequence is no key, and neither is a byte that is no UTF-8.
    """
    keys = []
    for sequence, character in _KEY.findall(data.decode("utf-8", "ignore")):
        name = _SEQUENCES.get(sequence) if sequence else "escape"
        if character:
            name = _CONTROLS.get(character, character if character.isprintable() else None)
        if name is not None:
            keys.append(name)
    return keys
