"""The formats of an audit: ``model.audit.AuditReport``."""
