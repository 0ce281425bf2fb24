"""The parts of library discovery: a tree of sources, in; what it declares, builds and can run, out. Nothing is run."""
