"""The experiments that a summary of the paper suggests."""
