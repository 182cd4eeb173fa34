"""How records become files and messages. Programs import formats from `penstock.datastream.formats`."""
