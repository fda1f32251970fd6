"""The README for an index page: no file is beside it there, so only full links stay links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

WHERE = (
    "`tidemark assets export DIR` writes the documents named here, which come with the package. "
    "CONTRIBUTING.md is in the source only."
)


def description(readme: str) -> str:
    """Without pictures and with the words of links to files in place of the links."""
    text = re.sub(r"^!\[[^\]]*\]\((?!\w+://)[^)]*\)\n+", "", readme, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]+)\]\((?!\w+://|#)[^)]*\)", r"\1", text)
    return text.replace("## Documentation\n", f"## Documentation\n\n{WHERE}\n", 1)


class DescriptionHook(MetadataHookInterface):
    """Hatch calls it as `tool.hatch.metadata.hooks.custom`."""

    def update(self, metadata: dict[str, Any]) -> None:
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(readme)}
