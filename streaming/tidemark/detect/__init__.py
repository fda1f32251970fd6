"""Detectors: one module each, listed in `detector_table`. Pure."""

from tidemark.detect.detector_table import DETECTORS

__all__ = ["DETECTORS"]
