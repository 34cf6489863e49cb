"""Merges the results of the parts of a run's flows.

Flows are divided among the parts, so counts add up, lists and rows concatenate, and within a flow the order of rows is
that of its part.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wiregauge.files import whole
from wiregauge.records import RunDirectoryError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["merge_entries", "merge_tables"]

SORTED_UP_TO: Final = 4_000_000
"""The most rows that are sorted by flow in memory; with more, flows may alternate, as in large undivided runs."""

_GROUP: Final = 1 << 20
_OF_ARROW: Final = b"ARROW:schema"
"""Metadata key that every writer adds for itself."""


def merge_entries(shares: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The entry of tracking.json, merged from the parts' entries."""
    whole = dict(shares[0])
    for key in ("records", "out_of_order"):
        whole[key] = sum(share[key] for share in shares)
    whole["unplanned"] = {
        reason: sum(share["unplanned"][reason] for share in shares) for reason in whole["unplanned"]
    }
    # A stable sort: receivers of a flow stay in the order of the test.
    flows = [flow for share in shares for flow in share["flows"]]
    whole["flows"] = sorted(flows, key=lambda flow: int(flow["flow"]))
    for key in ("clock_jumps", "damaged_segments"):
        whole[key] = [item for share in shares for item in share[key]]
    return whole


def merge_tables(parts: Sequence[Path], target: Path) -> None:
    """Merges the tables of all parts into one; `target` is replaced atomically. Raises RunDirectoryError."""
    import pyarrow as pa  # half a second, and every run imports this package
    import pyarrow.parquet as pq

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        files = [pq.ParquetFile(path) for path in parts]
        schema = files[0].schema_arrow
        said = {key: value for key, value in files[0].metadata.metadata.items() if key != _OF_ARROW}
        # The tracking kernel's name for items of a list; Arrow's default differs.
        with (
            whole(target) as beside,
            pq.ParquetWriter(beside, schema, compression="lz4", use_compliant_nested_type=False) as writer,
        ):
            writer.add_key_value_metadata(said)
            if sum(file.metadata.num_rows for file in files) <= SORTED_UP_TO:
                table = pa.concat_tables([file.read() for file in files])
                writer.write_table(table.take(_by_flow(table)), row_group_size=_GROUP)
            else:
                for file in files:
                    for group in range(file.num_row_groups):
                        writer.write_table(file.read_row_group(group), row_group_size=_GROUP)
        for file in files:
            file.close()
    except (OSError, pa.ArrowException) as error:
        raise RunDirectoryError(f"{target}: cannot be put together: {error}") from error


def _by_flow(table: pa.Table) -> pa.Array:
    """The order of rows: by flow, in sketches flows before switches; stable."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = [("flow", "ascending")]
    if "series" in table.column_names:
        of_switch = pc.equal(table["series"], "residence")
        table = table.append_column("of_switch", pc.cast(of_switch, pa.uint8()))
        keys.insert(0, ("of_switch", "ascending"))
    return pc.sort_indices(table, sort_keys=keys)
