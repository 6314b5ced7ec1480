"""The figures and appendices of the paper."""
