"""Running a program in the interpreter of one runtime: a job in; a trace that ends with its outcome, out."""
