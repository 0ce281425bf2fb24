"""The formats of a diagnosis: ``model.report.Report``."""
