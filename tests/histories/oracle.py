"""The proofs by observations alone, which chaos uses too."""

from tidemark_lab.judge.proofs import EPOCHS, Entry, Oracle, Range

__all__ = ["EPOCHS", "Entry", "Oracle", "Range"]
