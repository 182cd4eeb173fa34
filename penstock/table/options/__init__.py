"""The options `table.*`: their names, values and effects."""
