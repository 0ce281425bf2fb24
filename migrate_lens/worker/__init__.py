"""The child side: what runs in the interpreter of one runtime; imports the standard library and numpy only."""
