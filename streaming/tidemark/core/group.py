"""Moved: see tidemark.reduce."""

from tidemark.reduce.group import fold_group
from tidemark.reduce.rows import RawRecord, Row

__all__ = ["RawRecord", "Row", "fold_group"]
