"""Every method of a class that checks its arguments refuses those of the wrong type, at once and clearly.

Each argument is given values of types that its annotation does not name. The table says which may be anything, and why.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.common.time import Instant, TimeUnit, to_millis
from penstock.errors import InvalidArgument
from tests.surface.public import Argument, arguments

ANY_VALUE = {
    r"StreamExecutionEnvironment\.from_elements\(elements\)": "records are any objects",
    r"StreamExecutionEnvironment\.from_spark\(data_frame\)": "pyspark is imported late; the session refuses others",
    r"StreamExecutionEnvironment\.create_input\(input_format\)": "its error says what to use instead",
    r"ValueStateDescriptor\(default_value\)|\(initial_value\)": "a value of the state's type",
    r"PatternStream\.(flat_)?select\(functions\)": "one function, or a tag and two; the method checks which",
    r"(ConfigOption\(|Configuration\.(get|set)|default_value)": "a value of the option's type",
    r"TableEnvironment\.from_(elements|pandas)\(schema\)": "a ROW type, names or types; the method checks which",
    r"ClusterBuilder\(settings\)": "a setting of Cassandra's driver, which checks it",
    r"Pattern\.(where|or_|until)\(condition\)|Pattern.*\((window_time|to_times)\)": "the method checks it",
    r"CatalogFunction\(function\)": "kept for the catalog that made it",
    r"JobClient\.query\(request\)": "one of many kinds of request, which the answer tells apart",
    r"\((hadoop_config|writer_properties|class_loader)\)": "without a meaning here, or checked one by one",
    r"(JobClient\(job|TableResult\(rows|CompletableFuture\()": "made by Penstock itself",
    r"CompletableFuture\.completed\(value\)": "any value",
    r"KafkaSink\.producer\(more\)": "settings of the client library, which checks them",
    r"\((resolved_expression|ComputedColumn.expression|watermark_expression|expression)\)": "kept for those who ask",
    r"KeyedStream\.(name|uid|set_uid_hash|set_(max_)?parallelism|set_buffer_timeout|slot_sharing_group)\(": (
        "a keyed stream has no such setting: every call is refused"
    ),
}


PATTERN = re.compile(r"[\w.]+: the argument \w+ must be .+, not .+ \(\w+\)(; write \w+\(\))?", re.DOTALL)


class Stranger:
    """Of no type that any method takes."""


WRONG = [Stranger(), Stranger, 3 + 4j, True, 7, 1.5, "~ no name ~", b"bytes", None]


def reason(argument: Argument, table: dict[str, str]) -> str | None:
    return next((table[pattern] for pattern in table if re.search(pattern, str(argument))), None)


UNCHECKED = {
    r"\.api\.functions\.": "the engine calls functions, and makes what they are given",
    r"\.api\.state\.descriptors\.|\.(List|Map)View\.": "state is used for each record",
    r"\.api\.windows\.|\.datastream\.window\.": "the engine calls windows for each record",
    r"\.(cep\.(conditions|pattern_functions)|AfterMatchSkipStrategy)\.": "the engine calls them for each match",
    r"\.(basic_types|type_information|decimal_values|types\.Row)\.|\.table\.types\.": "called for each value",
    r"\.common\.(serialization|serializer)\.|\.kafka\.legacy_schemas\.": "called for each record",
    r"\.watermark_strategy\.": "called for each record",
    r"TimeUnit\.to_millis": "may be called for each record: checked by hand, and tested below",
    r"penstock\.connectors\.|datastream\.connectors\.": "between a connector and the engine, or called for each record",
    r"penstock\.formats\.": "called for each file, batch or record",
    r"penstock\.metrics\.": "called for each record",
    r"CloseableIterator": "the methods of an iterator",
    r"FunctionContext\.|Function\.": "called by the engine, and for each row",
    r"\.function_modules\.Modules?\.": "the environment checks the arguments",
}
"""Methods that are not checked, and why."""

UNCHECKED_MAKERS = {
    r"\.(AsyncFunctionDescriptor|DistributedCache|Quantifier|FunctionContext|CloseableIterator)\(": "made by Penstock",
    r"\.(GroupWindow|OverWindow|AggregatedTable|FileCompactStrategy|KafkaRecordSerializationSchema)\(": "by others",
    r"\.(CsvRowSerializationSchema|TwoPhaseCommitSink|BoundedOutOfOrdernessWatermarksSupplier)\(": "made by others",
    r"\.basic_types\.|ArrayTypeInfo\(|\.DecimalTypeInfo\(|\.DataType\(": "made by Types and DataTypes",
    r"\.(Row|TimeWindow|CountWindow|Watermark|Fetched|BadRecord)[.(]": "made for each record",
    r"\.(Prepared|\w+Split|PreparingWriter)[.(]": "made by connectors",
    r"\.infer_type\(": "every value has a type",
    r"_predicate\(": "called for each answer",
    r"\.Instant[.(]|\.common\.time\.to_millis\(": "may be called for each record: checked by hand, and tested below",
}
"""Constructors, factories and functions that are not checked, and why."""


def is_maker(one: Argument) -> bool:
    return one.owner is None or one.function.__name__ == "__init__" or not inspect.isfunction(one.member)


ALL = arguments()
CHECKED = [one for one in ALL if hasattr(one.function, "_checks_arguments")]


def parts(annotation: str) -> Iterator[str]:
    """Yield the alternatives of an annotation, without what is in brackets."""
    depth, part = 0, ""
    for character in annotation + "|":
        depth += (character in "[(") - (character in "])")
        if character == "|" and depth == 0:
            yield part.strip()
            part = ""
        elif depth == 0 and character not in "])":
            part += character


CALLABLES = [
    "Declarable",
    "Comparator",
    "Delta",
    "ExceptionPredicate",
    "GapExtractor",
    "GeneratorSupplier",
    "Reduction",
    "ResultPredicate",
    "Partitioner",
    "WindowFunctions",
]
"""Names for annotations that allow functions; a class is one."""

ADMITTED: dict[str, Any] = {
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "Types": lambda value: isinstance(value, str),
    "float": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes),
    "None": lambda value: value is None,
    "type": lambda value: isinstance(value, type),
    "Callable": lambda value: isinstance(value, type),
    **dict.fromkeys(CALLABLES, lambda value: isinstance(value, type)),
    **dict.fromkeys(("LengthOfTime", "Interval", "Ttl"), lambda v: isinstance(v, int) and not isinstance(v, bool)),
    "FieldLike": lambda value: isinstance(value, str),
    "Key": lambda value: isinstance(value, (type, int, str)) and not isinstance(value, bool),
    "Iterable": lambda value: isinstance(value, (str, bytes)),
    **dict.fromkeys(("Value", "Constant"), lambda v: isinstance(v, (bool, int, float, str, bytes, type(None)))),
}


def admits(argument: Argument, value: Any) -> bool:
    """Whether the annotation, read as a text, allows one of the wrong values; by a rule of its own."""
    if value is argument.parameter.default:
        return True
    return any(ADMITTED[part](value) for part in parts(argument.annotation) if part in ADMITTED)


def by_class() -> dict[str, list[Argument]]:
    """The checked arguments, by class, or by module for functions."""
    found: dict[str, list[Argument]] = {}
    for argument in CHECKED:
        owner = argument.owner
        home = argument.function.__module__ if owner is None else f"{owner.__module__}.{owner.__qualname__}"
        found.setdefault(home, []).append(argument)
    return found


@pytest.mark.parametrize("own", by_class().values(), ids=by_class())
def test_arguments_of_the_wrong_type_are_refused(own: list[Argument]) -> None:
    wrong = [problem for argument in own if not takes_anything(argument) for problem in problems(argument)]
    assert not wrong, "\n".join(wrong)


def takes_anything(argument: Argument) -> bool:
    """Whether there is a reason why an argument may be any object."""
    return bool(reason(argument, ANY_VALUE))


def is_vague(argument: Argument) -> bool:
    return argument.parameter.annotation in ("Any", "object", inspect.Parameter.empty)


def problems(argument: Argument) -> Iterator[str]:
    """Yield what a method does wrong with values that its annotation does not allow."""
    for value in WRONG:
        if admits(argument, value):
            continue
        given = f"{argument}: {argument.annotation} given {value!r}"
        try:
            argument.call(value)
        except InvalidArgument as error:
            if not is_clear(error, argument):
                yield f"{given} raised {error!r}"
        except Exception as error:
            yield f"{given} raised {error!r}"
        else:
            yield f"{given} was taken"


def is_clear(error: InvalidArgument, argument: Argument) -> bool:
    """Whether an error names the method, the argument, what was given and what is allowed."""
    variable = argument.parameter.kind is inspect.Parameter.VAR_KEYWORD
    names = error.argument == ("unknown" if variable else argument.parameter.name)
    method = argument.function.__name__ == "__init__" or argument.function.__name__ in error.method.split(".")
    return names and method and bool(PATTERN.fullmatch(str(error)))


@pytest.mark.parametrize("pattern", ANY_VALUE)
def test_every_exception_is_used(pattern: str) -> None:
    assert any(re.search(pattern, str(argument)) for argument in CHECKED)


@pytest.mark.parametrize("makers", [True, False])
def test_every_other_argument_has_a_reason(makers: bool) -> None:
    others = [one for one in ALL if one not in CHECKED and is_maker(one) is makers]
    reasons = UNCHECKED_MAKERS if makers else UNCHECKED
    assert not [str(one) for one in others if not reason(one, reasons)]
    assert not [pattern for pattern in reasons if not any(re.search(pattern, str(one)) for one in others)]


@pytest.mark.parametrize("value", [Stranger(), True, 1.5, "1", None])
def test_times_are_checked_by_hand(value: Any) -> None:
    calls = {
        "seconds": lambda: Instant(value),
        "nanos": lambda: Instant(1, value),
        "epoch_milli": lambda: Instant.of_epoch_milli(value),
        "duration": lambda: TimeUnit.SECONDS.to_millis(value),
        "value": lambda: to_millis(value),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidArgument, match=f"the argument {name} must be .* not ") as caught:
            call()
        assert caught.value.argument == name


def test_nothing_that_is_checked_is_annotated_with_any_value() -> None:
    vague = [str(one) for one in CHECKED if is_vague(one) and not takes_anything(one)]
    assert not vague


def test_the_walk_finds_the_builders() -> None:
    checked = {argument.owner.__qualname__ for argument in CHECKED if argument.owner is not None}
    assert {
        "StreamExecutionEnvironment",
        "DataStream",
        "KeyedStream",
        "_Windowed",
        "ConnectedStreams",
        "CheckpointConfig",
        "ExecutionConfig",
        "RestartStrategies",
        "WatermarkStrategy",
        "ValueStateDescriptor",
        "StateTtlConfig.Builder",
        "OutputTag",
        "Types",
    } <= checked
