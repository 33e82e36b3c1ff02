"""Expressions beside those of DuckDB, row by row."""

from __future__ import annotations

import datetime
import math
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import trommel

ROWS = 400


def table() -> pa.Table:
    """Rows with nulls and border values of every type that expressions compute with."""
    rng = random.Random(7)

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([rng.choice(values) for _ in range(ROWS)], kind)

    texts = ["", "a", "Ab", "a,b,c", " x ", "héllo wörld", "ÀÉ", "100%", "a_b", "\\", "straße", "aXbXc", None]
    return pa.table({
        "i": column([None, 0, 1, -1, 7, -7, 50, 10**6, -(10**6)], pa.int32()),
        "b": column([None, 0, 1, -1, 3, -3, 10**15, -(10**15)], pa.int64()),
        "u": column([None, 0, 1, 7, 60, 80], pa.uint8()),
        "f": column([None, 0.0, -0.0, 1.5, -2.5, 2.5, 1e300, math.inf, -math.inf, math.nan, 0.1], pa.float64()),
        "g": column([None, 0.0, 1.5, -2.25, 1024.0], pa.float32()),
        "t": column(texts, pa.string()),
        "w": column(["a", "b", "Ab", "%", "a%", None], pa.string()),
        "n": column(["1", " 2 ", "-3", "4.6", "1e3", None], pa.string()),
        "j": column(['{"a": {"b": [1, "x", null]}, "c": true}', '{"a": 2.5}', "{}", "[1, 2]", None], pa.string()),
        "o": column([True, False, None], pa.bool_()),
        "d": column([None, *(datetime.date(1969, 12, 31) + datetime.timedelta(371 * k) for k in range(9))], pa.date32()),
        "s": column(
            [None, *(datetime.datetime(1969, 12, 31, 23, 59, 59, 999999) + datetime.timedelta(97, 12345.678) * k for k in range(9))],
            pa.timestamp("us"),
        ),
        "l": column([None, [], [1], [1, None, 2, 1], [3, 3]], pa.list_(pa.int64())),
        "m": column([None, [], ["a"], ["b", None, "a", "b"]], pa.list_(pa.string())),
    })  # fmt: skip


ARITHMETIC = [
    *(f"{left} {op} {right}" for op in ("+", "-") for left in ("i", "b") for right in ("u", "3", "b")),
    *(f"{left} * {right}" for left in ("b", "i") for right in ("3", "u")),
    *(f"{left} / {right}" for left in ("i", "f", "b") for right in ("2", "u", "f", "1.5")),
    *(f"{left} // {right}" for left in ("i", "b") for right in ("3", "-2", "nullif(u, 0)")),
    *(f"{left} % {right}" for left in ("i", "b") for right in ("3", "-2", "nullif(u, 0)")),
    "f % 2", "g + 1", "g * g", "f * 2 - 1", "-b", "-f", "+i", "2 ^ (i % 10)", "g ^ 2",
]  # fmt: skip
COMPARISONS = [
    *(f"{left} {op} {right}" for op in ("=", "<>", "<", ">=") for left, right in (
        ("i", "b"), ("i", "u"), ("f", "i"), ("f", "f"), ("t", "w"), ("d", "s"), ("u", "60"), ("f", "g"),
    )),
    "i is distinct from b", "f is not distinct from f", "i between -1 and u", "t between 'a' and 'b'",
    "i in (1, 7, 50)", "i in (1, null)", "i not in (1, 7)", "t in ('a', '', 'ÀÉ')", "f in (0.0, 2.5)",
    "u in (1, b)", "d in (date '1971-01-06', date '1972-01-12')", "o = true", "d > '1972-01-01'",
    "s <= '1971-01-01 00:00:00'", "i > '3'", "o is true", "o is not true", "o is false", "o is unknown",
    "t is null", "t is not null",
]  # fmt: skip
LOGIC = [
    "o and i > 0", "o or i > 0", "not o", "not (o and t = 'a')", "i > 0 and b > 0 and o", "i > 0 or b > 0 or o",
    "nullif(i, 0) is null or 100 // nullif(i, 0) > 3", "case when i > 0 then 'p' when i < 0 then 'n' end",
    "case when o then i else b end", "case t when 'a' then 1 when 'Ab' then 2 else 0 end",
    "case when u <> 0 then 100 // u else -1 end", "coalesce(i, b, 5)", "coalesce(t, w, '?')", "nullif(i, b)",
    "nullif(t, 'a')", "greatest(i, b)", "least(i, b, 3)", "greatest(t, w)", "least(f, g)", "greatest(d, date '1975-01-01')",
]  # fmt: skip
TEXTS = [
    "lower(t)", "upper(t)", "trim(t)", "ltrim(t)", "rtrim(t)", "trim(t, 'ac')", "ltrim(t, 'a')", "length(t)", "len(t)",
    *(f"substr(t, {begin}, {length})" for begin in (1, 0, -2, 3, -9, "i % 5") for length in (2, 0, -1, "u")),
    "substr(t, 2)", "substring(t, -3)", *(f"split_part(t, ',', {n})" for n in (1, 2, -1, 0, 9)),
    "split_part(t, w, 1)", "replace(t, 'a', 'zz')", "replace(t, w, '')", "replace(t, '', 'x')",
    "starts_with(t, 'a')", "starts_with(t, w)", "contains(t, w)", "ends_with(t, 'c')", "concat(t, i, o)", "t || w",
    "t || i", "t like 'a%'", "t like '%b_c'", r"t like '\'", r"t like 'a\_b'", "t like 'a!_b' escape '!'",
    "t ilike 'A%'", "t not like '%a%'", "w like t", "t like w", "regexp_matches(t, '^a')", "regexp_matches(t, 'X', 'i')",
    "regexp_extract(t, '[a-z]+')", r"regexp_extract(t, '(\w),(\w)', 2)", "regexp_replace(t, 'X', '-')",
    "regexp_replace(t, 'X', '-', 'g')", r"regexp_replace(t, '(a)(.)', '\2\1')", "t[1]", "t[-1]", "t[9]",
]  # fmt: skip
NUMBERS = [
    "abs(b)", "abs(f)", "round(f)", "round(f, 1)", "round(b, -1)", "round(i)", "floor(f)", "ceil(f)", "ceiling(g)", "floor(i)",
]
CASTS = [
    "cast(n as int)", "cast(n as double)", "cast(i as text)", "cast(f as text)", "cast(o as text)", "cast(o as int)",
    "cast(d as text)", "cast(s as text)", "cast(d as timestamp)", "cast(s as date)", "cast(u as bigint)", "cast(g as double)",
    "try_cast(t as int)", "try_cast(b as smallint)", "try_cast(f as int)", "n::int + 1", "cast(i as double)",
    "try_cast(i as utinyint)", "cast(b as float)", "cast(i as decimal(18, 2))", "cast(i <> 0 as int)",
]
TIMES = [
    *(f"date_trunc('{part}', s)" for part in ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade")),
    *(f"date_part('{part}', s)" for part in ("second", "millisecond", "minute", "hour", "day", "week", "month", "quarter",
      "year", "dow", "isodow", "doy", "epoch", "decade", "century", "isoyear")),
    "date_part('year', d)", "date_part('dow', d)", "extract(month from d)", "to_timestamp(b / 1000000)", "to_timestamp(i)",
    "strptime('2024-' || (u % 12 + 1) || '-01', '%Y-%m-%d')", "strptime('10/Oct/2000:13:55:36 -0700', '%d/%b/%Y:%H:%M:%S %z')",
]  # fmt: skip
LISTS = [
    "len(l)", "length(m)", "list_contains(l, 1)", "list_contains(l, i)", "list_contains(m, 'a')", "list_contains(m, w)",
    "list_contains(l, null)", "l[1]", "l[-1]", "l[4]", "m[2]", "list_extract(l, u)", "contains(m, 'b')",
]  # fmt: skip
JSON = [f"json_extract_string(j, '{path}')" for path in ("$.a", "$.a.b", "$.a.b[0]", "$.a.b[1]", "$.a.b[2]", "$[0]", "$[-1]", "/a/b/1", "c", "$.\"a\"")]
ALL = [*ARITHMETIC, *COMPARISONS, *LOGIC, *TEXTS, *NUMBERS, *CASTS, *TIMES, *LISTS, *JSON]


def plain(value: Any) -> Any:
    """A value without the differences that types alone make."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, list):
        return [plain(item) for item in value]
    number = float(value)
    return "nan" if math.isnan(number) else number


@pytest.fixture(scope="module")
def data() -> pa.Table:
    return table()


@pytest.fixture(scope="module")
def connection(data: pa.Table) -> Any:
    made = duckdb.connect()
    made.execute("set timezone = 'UTC'")
    made.register("data", data)
    return made


def test_there_are_many() -> None:
    assert len(set(ALL)) == len(ALL) >= 200


@pytest.mark.parametrize("expression", ALL)
def test_values_are_those_of_duckdb(data: pa.Table, connection: Any, expression: str) -> None:
    expected = [row[0] for row in connection.execute(f"select {expression} from data").fetchall()]
    found = pa.table(trommel.select(data, [f"{expression} as value"]))["value"].to_pylist()
    wrong = [
        (row, ours, theirs)
        for row, (ours, theirs) in enumerate(zip(found, expected, strict=True))
        if plain(ours) != plain(theirs)
    ]
    inputs = [{name: data[name][row].as_py() for name in data.column_names if name in expression} for row, _, _ in wrong[:3]]
    assert not wrong, f"{expression}: {wrong[:3]}, of {inputs}"


def test_filters_are_those_of_duckdb(data: pa.Table, connection: Any) -> None:
    rng = random.Random(3)
    conditions = [*COMPARISONS, *(text for text in LOGIC if text.startswith(("o ", "not", "i >")))]
    for _ in range(200):
        first, second = rng.choice(conditions), rng.choice(conditions)
        where = f"({first}) {rng.choice(['and', 'or', 'and not'])} ({second})"
        expected = connection.execute(f"select count(*) from data where {where}").fetchone()[0]
        assert len(trommel.filter(data, where)) == expected, where


def test_unnest_makes_a_row_of_each_value(data: pa.Table, connection: Any) -> None:
    expected = connection.execute("select i, unnest(l) from data").fetchall()
    found = pa.table(trommel.select(data, ["i", "unnest(l) as value"])).to_pylist()
    assert [(row["i"], row["value"]) for row in found] == expected
    some = trommel.select({"n": [1], "l": [list(range(100_000))]}, ["n", "unnest(l) as value"])
    assert some["value"] == list(range(100_000)) and set(some["n"]) == {1}
