"""Observing a program: its source rewritten in; each call that concerns the framework recorded, out."""
