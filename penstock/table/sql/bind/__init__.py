"""From syntax trees to plans whose names and types are resolved."""
