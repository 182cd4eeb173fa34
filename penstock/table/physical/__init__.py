"""The nodes of the physical plan. Rules choose them, and builders make operators of them."""
