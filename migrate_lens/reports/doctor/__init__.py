"""The formats of what is installed and what was seen to work: ``doctor.examine.Health``."""
