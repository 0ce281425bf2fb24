"""The parent side of a run: workers are started here, jobs sent, and the traces they leave read back."""
