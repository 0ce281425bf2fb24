"""The formats of two traces held against each other: ``compare.comparison.Comparison``."""
