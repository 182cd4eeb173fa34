"""Copies orders from Kafka to PostgreSQL, and keeps the total of each customer there, exactly once.

penstock run kafka_to_postgres.py --servers broker:9092 --database jdbc:postgresql://host/shop --user shop
"""

import argparse
import os
from collections.abc import Iterator

from penstock.common import Row, Types, WatermarkStrategy
from penstock.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcSink
from penstock.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from penstock.datastream.formats.json import JsonRowDeserializationSchema
from penstock.datastream.state import ValueStateDescriptor

ORDER = Types.ROW_NAMED(["id", "customer", "amount"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])
TOTAL = Types.ROW_NAMED(["customer", "orders", "amount"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])


class Total(KeyedProcessFunction[str, Row, Row]):
    """Counts the orders of a customer, and adds their amounts up."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.orders = runtime_context.get_state(ValueStateDescriptor("orders", Types.LONG(), default_value=0))
        self.amount = runtime_context.get_state(ValueStateDescriptor("amount", Types.DOUBLE(), default_value=0.0))

    def process_element(self, order: Row, ctx: KeyedProcessFunction.Context[str]) -> Iterator[Row]:
        self.orders.update(self.orders.value() + 1)
        self.amount.update(self.amount.value() + order.amount)
        yield Row(order.customer, self.orders.value(), self.amount.value())


def source(servers: str, bounded: bool) -> KafkaSource:
    """Return a source of the topic `orders`, from its first message on; a bounded one ends with today's last."""
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics("orders")
        .set_group_id("orders-to-postgres")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(ORDER).build())
    )
    return (builder.set_bounded(KafkaOffsetsInitializer.latest()) if bounded else builder).build()


def copy_orders(servers: str, database: JdbcConnectionOptions, bounded: bool = False) -> None:
    """Run the job."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(5000)
    orders = env.from_source(source(servers, bounded), WatermarkStrategy.no_watermarks(), "orders").uid("orders")
    insert = "INSERT INTO orders (id, customer, amount) VALUES (?, ?, ?)"
    orders.sink_to(JdbcSink.exactly_once_sink(insert, ORDER, database)).uid("copies")
    totals = orders.key_by(lambda order: order.customer, Types.STRING()).process(Total(), TOTAL).uid("total")
    once = JdbcExactlyOnceOptions("penstock_total_commits")
    upsert = JdbcSink.upsert("totals", None, ["customer"], TOTAL, database, exactly_once_options=once)
    totals.sink_to(upsert).uid("totals")
    env.execute("orders to PostgreSQL")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", required=True, help="Kafka's servers, such as broker1:9092,broker2:9092")
    parser.add_argument("--database", required=True, help="such as jdbc:postgresql://host:5432/shop")
    parser.add_argument("--user")
    parser.add_argument("--bounded", action="store_true", help="end when today's orders are copied")
    given = parser.parse_args()
    database = JdbcConnectionOptions(given.database, None, given.user, os.environ.get("PGPASSWORD"))
    copy_orders(given.servers, database, given.bounded)


if __name__ == "__main__":
    main()
