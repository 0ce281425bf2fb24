"""A verified reproduction in; an issue that can be posted, out."""
