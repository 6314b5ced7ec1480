"""Equal functions written in another way."""
