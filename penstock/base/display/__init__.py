"""Objects as HTML and SVG for notebooks, and as text for terminals. This package is independent of jobs and tables."""
