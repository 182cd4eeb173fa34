"""The formats of files and messages. Programs import them from `penstock.datastream.formats`."""
