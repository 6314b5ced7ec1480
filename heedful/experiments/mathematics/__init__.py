"""Lemmas, propositions and rates, checked numerically."""
