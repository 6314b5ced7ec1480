"""Drawings of pairs of texts."""
