"""Benchmarks: they print figures, tests do not time."""
