"""SQL over the folder of a study: the queries that give the numbers of figures and tables.

Each is complete: DuckDB runs it as it is, in the folder of the study. Where a number is no SQL, as intervals and
positions are not, the query gives what it was made from, and figures name the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from suffice.study import Study


def files(study: Study, *tables: str) -> str:
    """The files of tables as DuckDB takes them: a path with wildcards, or a list of such; from the study's folder."""
    found = []
    for table in tables:
        several = study.plan.asked.named(table) != [table]
        name = f"{quote(table, safe='')}{'%2F*' if several else ''}"
        found.append(text(f"tables/measurement={name}/*/*.parquet"))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def relation(study: Study, *tables: str) -> str:
    """What follows FROM for one or more tables of a study."""
    return f"read_parquet({files(study, *tables)}, hive_partitioning = true, union_by_name = true)"


def select(study: Study, table: str | Sequence[str], what: str, rest: str = "", where: str = "") -> str:
    """A query over the rows of a table, or of several, that have no error."""
    limits = f"error IS NULL{f' AND {where}' if where else ''}"
    source = relation(study, *([table] if isinstance(table, str) else table))
    return f"SELECT {what}\nFROM {source}\nWHERE {limits}{f'{chr(10)}{rest}' if rest else ''};"


def inside(query: str) -> str:
    """A query as part of another, indented.

    Example:
        >>> inside("SELECT 1;")
        '  SELECT 1'
    """
    return indent(query.rstrip(";"), "  ")


def text(value: str) -> str:
    """A text as SQL has it.

    Example:
        >>> text("it's")
        "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def name(column: str) -> str:
    """The name of a column as SQL has it.

    Example:
        >>> name("insertion/area")
        '"insertion/area"'
    """
    return '"' + column.replace('"', '""') + '"'


def known(column: str) -> str:
    """The values of a column that are numbers, as SQL; metrics have NaN where they do not judge.

    DuckDB takes it from the statistics of a file, which leave NaN out, that ``isnan`` and ``= 'nan'`` are never true.
    """
    return f"CASE WHEN isfinite({name(column)}) THEN {name(column)} END"


def judged(metric: str) -> str:
    """The mean of a metric over the images that it judges."""
    return f"avg({known(metric)})"


def geometric(column: str) -> str:
    """The geometric mean of 1 + counts, less 1."""
    return f"exp(avg(ln(1 + {column}))) - 1"


def mean_of_models(study: Study, table: str, columns: Mapping[str, str]) -> str:
    """Means of columns, by model; the names under which they come, and their columns."""
    what = ", ".join(f"avg({column}) AS {name(title)}" for title, column in columns.items())
    counted = f"count({next(iter(columns.values()))}) AS images"
    return select(study, table, f"model, {what}, {counted}", "GROUP BY model\nORDER BY model")


def mean_of_trainings(study: Study, table: str, column: str) -> str:
    """The mean of each training, and of all of an architecture."""
    what = f'"group", seed, avg({column}) AS mean, avg(avg({column})) OVER (PARTITION BY "group") AS of_group'
    rest = 'GROUP BY "group", seed\nQUALIFY count(*) OVER (PARTITION BY "group") > 1\nORDER BY "group", seed'
    return select(study, table, what, rest, "seed IS NOT NULL")


def sizes(study: Study, table: str, image: int | None = None) -> str:
    """How many MSEs of each size there are, in all and an image."""
    rows = select(study, table, "model, sizes", where="" if image is None else f'"index" = {image}')
    return (
        f"WITH found AS (\n{inside(rows)}\n), images AS (\nSELECT model, count(*) AS images FROM found GROUP BY model\n"
        "), each AS (\nSELECT model, unnest(sizes) AS size FROM found\n)\n"
        "SELECT model, size, count(*) AS mses, count(*) / any_value(images) AS per_image\n"
        "FROM each JOIN images USING (model)\nGROUP BY model, size\nORDER BY model, size;"
    )


def explained(study: Study, table: str, most: int) -> str:
    """The share of images that an MSE of at most so many cells explains."""
    rows = select(study, table, "model, list_min(sizes) AS fewest")
    return (
        f"WITH found AS (\n{inside(rows)}\n)\n"
        "SELECT model, cells, avg(coalesce(fewest <= cells, false)::INT) AS share\n"
        f"FROM found, range(0, {most + 1}) AS numbers(cells)\nGROUP BY model, cells\nORDER BY model, cells;"
    )


def left(study: Study, table: str) -> str:
    """The share of the confidence that is left when so many cells of an MSE are taken away."""
    what = (
        "model, unnest(range(len(depth_counts))) AS taken,\n       "
        "unnest(depth_ratio_sums) AS ratios, unnest(depth_counts) AS sets"
    )
    return (
        f"WITH each AS (\n{inside(select(study, table, what))}\n)\n"
        "SELECT model, taken, avg(ratios / sets) AS ratio, count(*) AS images\n"
        "FROM each WHERE sets > 0\nGROUP BY model, taken\nORDER BY model, taken;"
    )


def crossed(study: Study, table: str, metric: str, hidden: str = "hidden", method: str | None = None) -> str:
    """Scores of the maps of one model on another, plain and normalized."""
    return f'{_crossed(study, table, metric, hidden, method)}\nSELECT * FROM crossed ORDER BY "row", "column";'


def crossed_families(study: Study, table: str, metric: str, hidden: str = "hidden", method: str | None = None) -> str:
    """The same by families, without the models' own maps."""
    return (
        f"{_crossed(study, table, metric, hidden, method)}, families AS (\n"
        "SELECT model, coalesce(any_value(family), 'no family') AS family FROM tested GROUP BY model\n)\n"
        'SELECT a.family AS "row", b.family AS "column", avg(value) AS value, count(*) AS pairs\n'
        'FROM crossed JOIN families a ON a.model = "row" JOIN families b ON b.model = "column"\n'
        'WHERE "row" <> "column"\nGROUP BY a.family, b.family;'
    )


def _crossed(study: Study, table: str, metric: str, hidden: str, method: str | None) -> str:
    """The matrix of a cross-test as ``crossed``; the ends are what models say of whole images and of baselines."""
    rows = select(study, table, "*", where="" if method is None else f"method = {text(method)}")
    low, high = "any_value(low)", "any_value(high)"
    score = judged(metric)
    return (
        f"WITH tested AS (\n{inside(rows)}\n), ends AS (\n"
        f"SELECT model, avg(whole) AS high, avg({name(hidden)}) AS low\n"
        "FROM tested WHERE maps_of = model GROUP BY model\n), crossed AS (\n"
        f'SELECT maps_of AS "row", model AS "column", {score} AS raw,\n'
        f"       ({score} - {low}) / ({high} - {low}) AS value\n"
        "FROM tested JOIN ends USING (model)\nWHERE maps_of IN (SELECT model FROM tested)\n"
        "GROUP BY maps_of, model\n)"
    )


def channels(study: Study, table: str) -> str:
    """The mean of the strongest activation of each channel, strongest first."""
    what = "model, layer, unnest(range(len(maxima))) AS place, unnest(maxima) AS strongest"
    return (
        f"WITH each AS (\n{inside(select(study, table, what))}\n)\n"
        "SELECT model, any_value(layer) AS layer, avg(strongest) AS mean,\n"
        "       row_number() OVER (PARTITION BY model ORDER BY avg(strongest) DESC) AS channel\n"
        "FROM each\nGROUP BY model, place\nORDER BY model, channel;"
    )


def seconds(study: Study, tables: Sequence[str]) -> str:
    """Seconds and inputs for a map of an image, from the metadata of the files."""

    def part(key: str) -> str:
        return f"sum((decode(value)->>'{key}')::DOUBLE)"

    return (
        "SELECT url_decode(regexp_extract(file_name, 'measurement=([^/]+)', 1)) AS measurement,\n"
        "       url_decode(regexp_extract(file_name, 'model=([^/]+)', 1)) AS model,\n"
        f"       {part('seconds')} / {part('images')} AS seconds,\n"
        f"       {part('forwards')} / {part('images')} AS forwards\n"
        f"FROM parquet_kv_metadata({files(study, *tables)})\n"
        "WHERE decode(key) = 'spent' AND file_name NOT IN (\n"
        f"SELECT file_name FROM parquet_kv_metadata({files(study, *tables)}) WHERE decode(key) = 'failed'\n)\n"
        f"GROUP BY ALL\nHAVING {part('images')} > 0\nORDER BY measurement, model;"
    )


def difference(
    study: Study, table: str, column: str, first: str, second: str, *, members: tuple[int, int] = (1, 1),
    counts: bool = False, scale: float = 1.0,
) -> str:  # fmt: skip
    """How far two differ over the images that both have: the ratio of 1 + counts, or the mean difference.

    Args:
        study: That was run.
        table: Its name.
        column: What is compared, as SQL.
        first: Which rows are those of the first.
        second: Likewise.
        members: How many rows an image has in each; those that lack one are left out.
        counts: Whether it is a count.
        scale: By which a difference is multiplied.
    """
    sides = []
    for side, (where, count) in {"one": (first, members[0]), "other": (second, members[1])}.items():
        rest = f'GROUP BY "index"\nHAVING count({column}) = {count}'
        own = select(study, table, f'"index", avg({column}) AS value', rest, where)
        sides.append(f"{side} AS (\n{inside(own)}\n)")
    what = "exp(avg(ln((1 + one.value) / (1 + other.value)))) AS ratio"
    if not counts:
        what = f"{'' if scale == 1 else f'{scale:g} * '}avg(one.value - other.value) AS difference"
    return f'WITH {", ".join(sides)}\nSELECT {what}, count(*) AS images\nFROM one JOIN other USING ("index");'
