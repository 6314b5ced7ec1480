"""Reports of probes, drawn: the page, its charts, the terminal, and the files."""
