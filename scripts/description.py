"""The README for an index page: no file is beside it there, so only full links stay links.

PROJECT_URL is the project's address, for the page of an index, of the site and of the image. It is
empty by default.
"""

from __future__ import annotations

import os
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
        address = os.environ.get("PROJECT_URL")
        metadata["urls"] = {"Source": address} if address else {}
        metadata["readme"] = {"content-type": "text/markdown", "text": description(readme)}
