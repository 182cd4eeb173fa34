"""The DataSet API: programs over bounded data, as ordinary Spark jobs with functions in Python.

env = ExecutionEnvironment.get_execution_environment()
words = env.read_text_file("book.txt").flat_map(lambda line: line.split()).map(lambda word: (word, 1))
words.group_by(0).sum(1).print()
"""

from penstock.dataset.data_set import DataSet
from penstock.dataset.data_set_utils import DataSetUtils
from penstock.dataset.data_sink import DataSink
from penstock.dataset.execution_environment import ExecutionEnvironment
from penstock.dataset.plan.enums import Aggregations, CombineHint, JoinHint, Order, WriteMode

__all__ = [
    "Aggregations",
    "CombineHint",
    "DataSet",
    "DataSetUtils",
    "DataSink",
    "ExecutionEnvironment",
    "JoinHint",
    "Order",
    "WriteMode",
]
