"""`python -m tidemark.stream`: the verb without the rest of the command line."""

from __future__ import annotations

from tidemark.stream.command import main

if __name__ == "__main__":
    main()
