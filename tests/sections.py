"""The order of the tests: sections are folders, a stage is one or two lists of them.

`make tests` runs the stages one after another, the lists of a stage side by side in two pytest
processes. The first stage runs tests that compute beside tests that mostly wait. The scenes run
alone, because other load would disturb their timing. A broken reducer shows before a broker starts.
"""

from __future__ import annotations

from itertools import chain

STAGES = (
    (
        (
            *("core", "evolve", "detect", "scenarios", "reduce", "assess", "model"),
            *("model_and_detectors", "settings", "kafka", "jvm", "local", "demo", "collect"),
            *("verbs", "export", "notify", "pages", "docs", "deploy", "packaging", "mutation"),
        ),
        ("delivery",),
    ),
    (("scenes",),),
    (("stream",), ("cluster", "rules", "dashboards", "browser")),
)
SECTIONS = tuple(chain.from_iterable(chain.from_iterable(STAGES)))
