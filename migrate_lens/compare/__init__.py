"""Two traces in; what differs between them, and where it began, out. Pure functions: nothing is run here."""
