"""The SQL gateway: sessions in which remote clients run SQL, over the REST interface of Flink's SQL gateway."""
