"""The selector of the collector's event loop finds keys as the standard one does."""

from __future__ import annotations

import selectors
import socket
from selectors import EVENT_READ, EVENT_WRITE

import pytest

from tidemark.collect.connect.event_loop import KeySelector


@pytest.mark.parametrize("kind", [selectors.DefaultSelector, KeySelector])
def test_a_key_is_that_of_the_newest_registration(
    kind: type[selectors.DefaultSelector],
) -> None:
    ours, theirs = socket.socketpair()
    with kind() as selector, ours, theirs:
        with pytest.raises(KeyError):
            selector.get_key(ours)
        assert selector.register(ours, EVENT_READ, "a") == selector.get_key(ours)
        with pytest.raises(KeyError):
            selector.register(ours, EVENT_READ)
        assert selector.modify(ours, EVENT_READ | EVENT_WRITE, "b") == selector.get_key(ours)
        assert selector.get_key(ours).data == "b"
        assert [key.data for key, _ in selector.select(0)] == ["b"]
        ours.close()
        # A closed socket is still there, until it is unregistered.
        assert selector.get_key(ours).data == "b"
        selector.unregister(ours)
        with pytest.raises((KeyError, ValueError)):
            selector.get_key(ours)
