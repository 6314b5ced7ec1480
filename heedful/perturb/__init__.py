"""Removing parts of a document and watching the model."""
