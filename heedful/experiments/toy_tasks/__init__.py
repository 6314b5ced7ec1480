"""Histogram counting and Dyck languages: tasks for which a correct attention pattern is known."""
