"""The table environments, which bring catalogs, planner and jobs together."""
