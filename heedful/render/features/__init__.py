"""Pages about the features of a dictionary."""
