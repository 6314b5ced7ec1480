"""Sparse autoencoders beside other packages and known answers; no part of the package."""
