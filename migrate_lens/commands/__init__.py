"""One module a command: options in; the finished document that a report shows, out; nothing is printed here."""
