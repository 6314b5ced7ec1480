"""Which characters of the text each token covers, and which word it belongs to."""
