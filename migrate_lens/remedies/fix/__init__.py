"""A gap and the sources in; a replacement that gave torch's result on both sides, out."""
