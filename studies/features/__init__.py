"""Measurements of sparse autoencoders."""
