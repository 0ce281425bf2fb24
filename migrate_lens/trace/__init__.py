"""The parent side of tracing: workers are started here, jobs sent, and the traces they leave read back."""
