"""What the features of a dictionary respond to, read off texts without a language model."""
