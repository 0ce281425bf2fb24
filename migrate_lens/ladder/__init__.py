"""A library and an interpreter go in; how its build and import end, and every native gap behind them, come out."""
