"""The conformance suite: a tracer in; which of its claims a program proves, and which one disproves, out."""
