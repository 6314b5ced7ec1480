"""What is read out of attention maps: operators over heads, layers and rows, and patterns of heads."""
