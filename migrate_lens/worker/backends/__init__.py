"""What each framework must answer about its own objects: one folder a framework."""
