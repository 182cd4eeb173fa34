"""Objects as HTML and SVG for notebooks, and as text for terminals. Nothing here knows what a job or a table is."""
