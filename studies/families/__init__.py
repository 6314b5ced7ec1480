"""One small Hugging Face model of every family that heedful explains, trained on real data."""
