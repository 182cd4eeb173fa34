"""Files on any file system: found and read, written in parts, compacted, and published."""
