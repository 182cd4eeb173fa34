"""Conversions between moments and the local times of a zone, for whole columns."""

from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from penstock.table.functions.typing.registry import Value

_UTC = pa.timestamp("us", "UTC")


def local(value: Value, zone: str) -> Value:
    """Return a timestamp as local time of the zone."""
    if pa.types.is_timestamp(value.type) and value.type.tz is not None:
        return pc.local_timestamp(pc.cast(value, pa.timestamp("us", zone)))
    return value


def instant(value: Value, zone: str) -> Value:
    """Return the moment of a local time.

    If clocks show the time twice, it is the first moment. If clocks skip the time, it is later by the length of the
    gap.
    """
    found = pc.assume_timezone(value, zone, ambiguous="earliest", nonexistent="earliest")
    skipped = pc.fill_null(pc.not_equal(pc.local_timestamp(found), value), False)
    found = pc.cast(found, _UTC)
    if isinstance(value, pa.Scalar) or not pc.any(skipped).as_py():
        return found
    there = ZoneInfo(zone)
    shown = zip(value.to_pylist(), skipped.to_pylist(), strict=True)
    later = [one.replace(tzinfo=there).astimezone(datetime.UTC) if gap else None for one, gap in shown]
    return pc.if_else(skipped, pa.array(later, _UTC), found)
