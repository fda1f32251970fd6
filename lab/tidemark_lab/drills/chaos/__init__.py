"""Chaos: drills with a random schedule, which a seed repeats.

`benign` faults lose nothing, and no alert may be needless. `hostile` ones lose records, and no
claim may be untrue, no sampled loss unclaimed. `run` injects one after another; `judgement` judges
the recording.
"""
