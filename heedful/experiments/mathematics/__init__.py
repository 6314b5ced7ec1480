"""Lemmas, propositions and rates, checked by number."""
