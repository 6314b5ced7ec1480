"""Layer-wise relevance propagation through any network: its rules, and the pass that uses them."""
