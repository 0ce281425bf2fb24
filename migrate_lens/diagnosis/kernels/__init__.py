"""Findings that show in a library's own operator in; the C++ construct in its kernel that is at fault, out."""
