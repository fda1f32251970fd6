"""The state after an event: pure functions of the state before it, and the proofs that rest on both."""
