"""Views of one explanation: its scores as bars, the masked texts behind it, its rule, and maps with numbers."""
