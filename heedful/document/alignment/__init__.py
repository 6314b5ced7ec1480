"""Which characters of the text each token stands for."""
