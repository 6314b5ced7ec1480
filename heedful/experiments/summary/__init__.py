"""The findings that the paper's summary names."""
