"""The service around the engine: launching programs, the server, REST, the SQL gateway, the command line, reporters."""
