"""Intervals and correlations."""
