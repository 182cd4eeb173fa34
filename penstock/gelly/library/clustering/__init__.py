"""How closely the neighbours of vertices are connected: modules for directed and for undirected graphs."""
