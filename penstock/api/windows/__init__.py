"""Windows and the objects that define them: assigners, triggers, evictors."""
