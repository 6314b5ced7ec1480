"""The transformer whose parts can be switched on and off: its switches, and its training."""
