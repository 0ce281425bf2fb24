"""A port's tree in; what is unfinished in it, out."""
