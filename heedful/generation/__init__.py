"""Text that a language model writes, and what it came from."""
