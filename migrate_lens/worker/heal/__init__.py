"""Keep-going: torch's recorded trace in; torch's results handed to the program where it differs, out."""
