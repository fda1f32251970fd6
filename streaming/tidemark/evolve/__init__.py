"""The state after an event, and the proofs that follow from it. Pure functions."""
