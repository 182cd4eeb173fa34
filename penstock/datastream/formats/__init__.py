"""The formats of files and messages, under the names that PyFlink gives to each of them."""
