"""A gap and its recorded calls in; the smallest program that shows it, out."""
