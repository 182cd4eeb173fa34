"""The elements that flow between operators: chunks of rows or columns, watermarks, latency markers, and failures."""
