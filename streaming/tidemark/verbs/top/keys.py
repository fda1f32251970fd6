"""Keys of a terminal, from the bytes that it sends."""

from __future__ import annotations

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


def decode_keys(data: bytes) -> list[str]:
    """The keys in one read: each a printable character, or a name such as `page up`.

    An unknown sequence is no key, and neither is a byte that is no UTF-8.
    """
    text, keys = data.decode("utf-8", "ignore"), []
    at = 0
    while at < len(text):
        if text[at] == "\x1b":
            length = _sequence_length(text, at + 1)
            sequence = text[at + 1 : at + 1 + length]
            if not sequence:
                keys.append("escape")
            elif sequence in _SEQUENCES:
                keys.append(_SEQUENCES[sequence])
            at += 1 + length
            continue
        if text[at] in _CONTROLS:
            keys.append(_CONTROLS[text[at]])
        elif text[at].isprintable():
            keys.append(text[at])
        at += 1
    return keys


def _sequence_length(text: str, at: int) -> int:
    """The characters of a sequence after its escape: `[` or `O`, parameters and a final one."""
    if at >= len(text) or text[at] not in "[O":
        return 0
    end = at + 1
    while end < len(text) and not "@" <= text[end] <= "~":
        end += 1
    return min(end + 1, len(text)) - at
