"""Figures and formulas of the lectures."""
