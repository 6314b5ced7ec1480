"""Measurements: `python -m benchmarks`, or `make bench`."""
