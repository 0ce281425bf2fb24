"""The formats of calls that were made again: ``runs.replay.Judged``, one a call."""
