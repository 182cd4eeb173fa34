"""Changes of whole graphs: degrees of vertices and edges, filters, simple graphs."""
