"""Trains the bundled model "reviews": `python -m studies.reviews`."""
