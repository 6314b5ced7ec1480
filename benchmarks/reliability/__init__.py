"""Hostile input, damaged files and killed runs: heedful must succeed, or refuse with one sentence. `make fuzz`"""
