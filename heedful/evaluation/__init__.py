"""Which explanation to believe, and why explanations differ."""
