"""What receivers answer, without the secrets that they repeat."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.web.hidden import HIDDEN, MIN_BEGINNING, without_secrets

SECRET = "T0123456-hunter2"
URL = f"https://hooks.example.org/services/{SECRET}?token=qwertyuiop"
BASIC = f"Basic {b64encode(b'ada:hunter2hunter2').decode()}"


@pytest.mark.parametrize(
    ("text", "url", "header", "shown"),
    [
        *(
            (text, URL, BASIC, shown)
            for text, shown in (
                (f"Cannot POST /services/{SECRET}", f"Cannot POST /{HIDDEN}/{HIDDEN}"),
                ("no token qwertyuiop", f"no token {HIDDEN}"),
                (f"got Authorization: {BASIC}", f"got Authorization: Basic {HIDDEN}"),
                ("wrong password hunter2hunter2", f"wrong password {HIDDEN}"),
                (f"it was cut: {SECRET[:10]}", f"it was cut: {HIDDEN}"),
                ("hooks.example.org is busy", "hooks.example.org is busy"),
                ("", ""),
            )
        ),
        # Escaped words of an address are known in both forms.
        (
            "hunter2%2Fhunter2 or hunter2/hunter2",
            "https://a.example.org/hunter2%2Fhunter2",
            None,
            f"{HIDDEN} or {HIDDEN}",
        ),
        ("x.y.z-token-1", "http://a", "Bearer x.y.z-token-1", HIDDEN),
    ],
)
def test_what_is_repeated_is_hidden(text: str, url: str, header: str | None, shown: str) -> None:
    assert without_secrets(text, url, header) == shown


@given(before=st.text(max_size=20), cut=st.integers(0, 40))
def test_no_part_of_a_secret_is_left_at_the_end(before: str, cut: int) -> None:
    text = f"{before}{SECRET}"[: cut + len(before)]
    shown = without_secrets(text, URL, None)
    assert SECRET[:MIN_BEGINNING] not in shown.removeprefix(before)


@given(text=st.text(max_size=50), url=st.text(max_size=50), header=st.text(max_size=50))
def test_any_text_has_an_answer(text: str, url: str, header: str) -> None:
    assert isinstance(without_secrets(text, f"http://a/{url}", header), str)
    assert isinstance(without_secrets(text, "http://a", f"Basic {header}"), str)
