"""Orders beside broadcast prices; options set through the configuration, a class hierarchy of records."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from pyflink.common import Configuration, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.util.java_utils import get_j_env_configuration
from shop.functions import Priced, PRICES
from shop.model import Express, Order


def build(env: StreamExecutionEnvironment):
    settings = Configuration(j_configuration=get_j_env_configuration(env._j_stream_execution_environment))
    settings.set_string("pipeline.name", "orders")
    settings.set_integer("parallelism.default", 1)
    orders = env.from_collection([Order("pen", 2), Express("ink", 1), Order("paper", 10)])
    prices = env.from_collection([("pen", 3), ("ink", 7), ("paper", 1)]).broadcast(PRICES)
    return orders.connect(prices).process(Priced(), Types.STRING())


if __name__ == "__main__":
    environment = StreamExecutionEnvironment.get_execution_environment()
    build(environment).print()
    environment.execute()
