"""The nouns: frozen types and enums that every other module may import; no I/O, standard library and numpy only."""
