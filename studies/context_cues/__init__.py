"""Prompts whose answer only the context has, and contexts that say nothing: how often `heedful.context` is right."""
