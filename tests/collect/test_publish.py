from __future__ import annotations

import io

from tidemark.collect.publish.pack import EventRecord
from tidemark.collect.publish.publisher import LinePublisher


def test_lines_end_in_newlines_and_need_one_group() -> None:
    out = io.BytesIO()
    publisher = LinePublisher(out)
    publisher.put([EventRecord(0, b"{}", "c", (), False), EventRecord(0, b"[]", "c", (), False)])
    publisher.close(1.0)
    assert (out.getvalue(), publisher.groups, publisher.published) == (b"{}\n[]\n", 1, 2)
