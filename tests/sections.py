"""The order of the tests: sections are folders, a stage is one to four lists of them.

`make tests` runs the stages one after another, the lists of a stage side by side, each in its own
pytest process. In the first stage two lists compute and two mostly wait. Beside all stages one
process works through BACKGROUND at a lower priority: sections that compute and measure no time.
Load would disturb the timing of the scenes: they are a stage of their own, and the background then
has the lowest priority. It computes while they wait.
"""

from __future__ import annotations

from itertools import chain

BACKGROUND = (
    *("core", "evolve", "detect", "scenarios", "reduce", "assess", "model", "cases"),
    *("settings", "pages", "mutation", "judge", "fuzz", "soak", "model_and_detectors", "histories"),
)
TIMED = (("scenes",),)
STAGES = (
    (
        ("kafka", "web", "jvm", "brokers", "demo", "collect", "notify", "docs", "deploy", "drills"),
        ("verbs", "escrow", "export", "packaging", "rules", "bench"),
        ("delivery",),
        ("dashboards", "messages"),
    ),
    TIMED,
    (("stream",), ("cluster", "versions", "browser")),
)
SECTIONS = (*BACKGROUND, *chain.from_iterable(chain.from_iterable(STAGES)))
