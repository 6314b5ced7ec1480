"""Histogram counting and Dyck languages: tasks whose right attention is known."""
