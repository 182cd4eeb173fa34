"""Windows, and what users can say about them: assigners, triggers, evictors."""
