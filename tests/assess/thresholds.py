"""The default of the threshold lag_ms, for tests of answers that it is an argument of."""

from __future__ import annotations

from typing import Final

from tidemark.detect.default_thresholds import Detection, Thresholds

LAG_MS: Final = float(Thresholds().lag_ms)
LAG_THRESHOLD: Final = Detection().lag_threshold()
