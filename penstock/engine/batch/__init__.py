"""BATCH mode inside a slot: input sorted by key in bounded memory, stage by stage."""
