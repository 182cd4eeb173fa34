"""How records become files and messages, under the names that PyFlink gives to each format."""
