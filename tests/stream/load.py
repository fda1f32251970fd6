"""Passes from a thread while processes of the stream and the exporter are ended."""

from __future__ import annotations

import threading

from tests.stream.test_stream import GARBAGE, LOAD
from tests.stream.topics import Publisher
from tidemark.settings import Settings


class Load:
    """Passes each 300 ms."""

    def __init__(self, settings: Settings) -> None:
        self.publisher, self._stopped = Publisher(settings), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(0.3):
            for partition, value in LOAD.records(number):
                self.publisher.send(partition, value)
            number += 1

    def end(self) -> None:
        """Ends with a record in each group that becomes a dead letter: how far the stream is."""
        self._stopped.set()
        self._thread.join()
        for group in range(LOAD.groups):
            self.publisher.send(group, GARBAGE)
