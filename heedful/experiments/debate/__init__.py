"""The debate whether attention is explanation: its models, data sets and published numbers."""
