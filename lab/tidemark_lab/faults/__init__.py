"""Faults to inject and heal, each once: what drills, chaos, demo, soak and benchmarks inject.

`fault.run_fault` injects one, holds it, heals it, waits until the cluster is whole, and records
the times.
"""
