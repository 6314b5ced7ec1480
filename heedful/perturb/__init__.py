"""Evaluates the model on masked copies of a document."""
