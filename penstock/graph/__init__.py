"""The program as data: transformations, and the plan of stages and chains that they become."""
