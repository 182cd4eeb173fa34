"""The table environments, which connect catalogs, planner and jobs."""
