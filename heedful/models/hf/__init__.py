"""Hugging Face models."""
