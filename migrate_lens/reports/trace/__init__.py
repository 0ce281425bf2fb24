"""The formats of a recorded trace: ``runs.request.Recorded``."""
