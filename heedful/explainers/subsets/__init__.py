"""Methods whose explanation is a set of units."""
