"""The file that spark-submit runs: `tidemark stream` and nothing else."""

from __future__ import annotations

from tidemark.stream.command import main

if __name__ == "__main__":
    main()
