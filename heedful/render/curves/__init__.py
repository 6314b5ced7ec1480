"""Curves of accuracies, drawn."""
