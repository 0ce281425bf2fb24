"""Reading C++: headers and tokens in; declared names, and names as torch documents them, out."""
