"""Training of word models with any loss, edited or frozen attention, and losses for better attention."""
