"""Training of sparse autoencoders: heedful beside SAELens."""
