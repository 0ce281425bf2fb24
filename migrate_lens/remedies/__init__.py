"""Remedies: gaps and what was recorded of them in; reproductions, issues and workarounds that were run out.

Nothing here runs a framework: whatever has to be tried goes through the seam of ``migrate_lens.remedies.lab``.
"""
