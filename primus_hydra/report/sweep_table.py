"""The table of a report: ranked points first, then what has no score, with its reason."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from primus_hydra.report.model import Report, Row
from primus_hydra.report.plain_text import make_plain
from primus_hydra.report.ranking import describe_ranking
from primus_hydra.report.short_names import shorten
from primus_hydra.report.table_columns import Column, fit, list_columns

_MAX_NAMES = 4


@dataclass(frozen=True, slots=True)
class _SweepTable:
    """Draws itself for the width that there is: a column of four characters cannot be read."""

    report: Report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The ranking, then why the others have no score."""
        rows = self.report.rows
        title, names = shorten([row.differs for row in rows])
        named = dict(zip(rows, names, strict=True))
        name = Column(title, named.__getitem__, is_number=False, folds=True)
        shown, left_out = fit(list_columns(self.report, name), rows, options.max_width)
        yield Text(describe_ranking(self.report), overflow="fold")
        yield _draw(shown, rows)
        if left_out:
            names_left_out = "; ".join(column.title for column in left_out)
            yield Text(f"A wider terminal shows more: {names_left_out}.", overflow="fold")
        yield from _tell_reasons(named)


def _draw(columns: Mapping[Column, int], rows: Sequence[Row]) -> Table:
    table = Table()
    for column, width in columns.items():
        table.add_column(
            Text(make_plain(column.title)),
            justify="right" if column.is_number else "left",
            overflow="fold",
            width=width,
        )
    for cells in zip(*(column.cells(rows) for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    return table


def sweep_table(report: Report) -> RenderableType:
    """What a person reads when a sweep is over, or while it runs: the ranking, then why the others have no score.

    Args:
        report: see `read.read_report`.
    """
    return _SweepTable(report)


def _tell_reasons(named: Mapping[Row, str]) -> Iterator[Text]:
    """Why points have no score, or ended as they did; a reason that many share is told once."""
    points: defaultdict[str, list[str]] = defaultdict(list)
    for row, name in named.items():
        if row.reason:
            points[row.reason].append(name)
    for reason, names in points.items():
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        yield Text(make_plain(f"{'; '.join(names[:_MAX_NAMES])}{more}: {reason}"), overflow="fold")
