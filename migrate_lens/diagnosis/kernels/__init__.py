"""Findings that show in a library's own operator in; the C++ construct in its kernel that is at fault, out.

``call_marks`` marks the calls in a C++ file, ``marked_build`` builds both sides with them, ``call_log`` reads what they
said, ``parting`` finds where the two sides went apart, and ``construct_at_fault`` names it.
"""
