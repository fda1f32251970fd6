from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collect.lab import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    made = Lab()
    yield made
    made.close()
