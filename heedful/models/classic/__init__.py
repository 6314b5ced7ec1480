"""The classic models: an encoder of words, one attention over its states, a linear map; of texts or pairs."""
