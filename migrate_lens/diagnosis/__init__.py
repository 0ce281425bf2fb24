"""A probe on both sides in; findings, each shown by a run, out."""
