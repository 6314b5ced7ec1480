"""A transformer encoder that reads word pieces, the family of the bundled model "reviews"."""
