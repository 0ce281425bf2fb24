"""Paddle's side of the seam."""
