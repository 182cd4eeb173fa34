"""From text to syntax trees: tokens, expressions, queries and statements."""
