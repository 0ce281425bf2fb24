"""Torch's side of the seam."""
