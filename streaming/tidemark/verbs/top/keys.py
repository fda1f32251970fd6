"""Keys of a terminal, from the bytes that it sends."""

from __future__ import annotations

from typing import Final

UP: Final = "up"
DOWN: Final = "down"
LEFT: Final = "left"
RIGHT: Final = "right"
PAGE_UP: Final = "page up"
PAGE_DOWN: Final = "page down"
HOME: Final = "home"
END: Final = "end"
ENTER: Final = "enter"
ESCAPE: Final = "escape"
BACKSPACE: Final = "backspace"
TAB: Final = "tab"

_SEQUENCES: Final = {
    "[A": UP,
    "OA": UP,
    "[B": DOWN,
    "OB": DOWN,
    "[C": RIGHT,
    "OC": RIGHT,
    "[D": LEFT,
    "OD": LEFT,
    "[5~": PAGE_UP,
    "[6~": PAGE_DOWN,
    "[H": HOME,
    "OH": HOME,
    "[1~": HOME,
    "[F": END,
    "OF": END,
    "[4~": END,
}
_CONTROLS: Final = {"\r": ENTER, "\n": ENTER, "\x7f": BACKSPACE, "\b": BACKSPACE, "\t": TAB}


def decode_keys(data: bytes) -> list[str]:
    """The keys in one read: a printable character, or one of the names above.

    An unknown sequence is no key, and neither is a byte that is no UTF-8.
    """
    text, keys = data.decode("utf-8", "ignore"), []
    at = 0
    while at < len(text):
        if text[at] == "\x1b":
            length = _sequence_length(text, at + 1)
            sequence = text[at + 1 : at + 1 + length]
            if not sequence:
                keys.append(ESCAPE)
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
