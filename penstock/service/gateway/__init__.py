"""The SQL gateway: sessions in which clients far away run SQL, over the REST interface of Flink's SQL gateway."""
