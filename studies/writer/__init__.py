"""Training of the bundled language model "writer"."""
