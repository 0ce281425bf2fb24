"""Rules as data: files in; validated rules, and which of them answers to a set of facts, out."""
