"""Files on any file system: reading, writing in parts, compacting and publishing."""
