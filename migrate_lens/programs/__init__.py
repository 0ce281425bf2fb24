"""Recorded calls in; source text that makes them again, out."""
