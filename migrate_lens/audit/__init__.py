"""Sources in, the gaps that a migration would meet out; nothing of them is imported, built or run."""
