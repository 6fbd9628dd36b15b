"""Parquet, Arrow and CSV files as a stream of batches of rows in the model's form."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from cgnlearn.model.frames import chosen_columns, is_missing
from cgnlearn.model.schema import NO_LEVELS, Levels, Schema
from cgnlearn.model.table import MISSING, Table, table_of

BATCH_ROWS = 1 << 16
PIECE = 1 << 16  # bytes of a column of a Parquet file that are read at once
MOST_LEVELS = 10_000  # of a categorical column: more are names of rows
FORMATS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc", ".csv": "csv", ".tsv": "csv"}
NO_VALUE = ["", "na", "NA", "n/a", "N/A", "nan", "NaN", "NAN", "null", "NULL", "Null", "?"]  # in text files


@dataclass(frozen=True, eq=False)
class Stream:
    """Files and how their columns are read.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    columns : tuple of str
        The attributes.
    as_text : frozenset of str
    target : str or None
    groups : str or None
        The column that says which rows belong together.
    drop_missing : bool
    batch_rows : int
    """

    dataset: Any
    columns: tuple[str, ...]
    as_text: frozenset[str]
    target: str | None = None
    groups: str | None = None
    drop_missing: bool = False
    batch_rows: int = BATCH_ROWS

    @classmethod
    def of(
        cls, source: Any, as_text: Collection[str], columns: Sequence[str] | None, target: str | None = None,
        groups: str | None = None, **options: Any,
    ) -> Stream:  # fmt: skip
        """Open files; a column that they do not have is refused."""
        dataset = _dataset(source, as_text)
        names = dataset.schema.names
        special = [name for name in (target, groups) if name is not None]
        chosen = tuple(name for name in names if name not in special) if columns is None else tuple(columns)
        for name in (*chosen, *as_text, *special):
            if name not in names:
                raise ValueError(f"there is no column {name!r} in {_what(source)}; it has {', '.join(names[:8])}")
        if not chosen:
            raise ValueError(f"{_what(source)} has no columns besides the classes: give it attributes to learn from")
        return cls(dataset, chosen, frozenset(as_text), target, groups, **options)

    def schema(self, categorical_features: Any = "from_dtype") -> tuple[Schema, int]:
        """Levels and classes, agreed over all files, and the number of rows that count."""
        assert self.target is not None
        discrete = self._discrete(categorical_features)
        found: dict[str, set[Hashable]] = {name: set() for name in (*discrete, self.target)}
        n_rows = 0
        for batch, _ in self.batches(self.needed if self.drop_missing else list(found)):
            n_rows += batch.num_rows
            for name, levels in found.items():
                levels.update(self._encoded(batch, name)[1])
                if len(levels) > MOST_LEVELS:
                    raise ValueError(f"column {name!r} has more than {MOST_LEVELS:,} levels: leave it out")
        if not n_rows:
            raise ValueError("there are no rows, or none without an empty cell: give some")
        if not found[self.target]:
            raise ValueError(f"column {self.target!r}, the target, is empty: give rows of two classes at least")
        agreed = {name: _in_order(levels, name) for name, levels in found.items()}
        classes = agreed[self.target]
        check_classification_targets(np.array(classes))
        if len(classes) < 2:
            raise ValueError(f"column {self.target!r} has one class only, {classes[0]!r}: two at least are needed")
        return Schema(self.columns, tuple(agreed.get(name) for name in self.columns), classes, "pyarrow"), n_rows

    def tables(self, schema: Schema) -> Iterator[tuple[Table, int]]:
        """Labelled rows in the model's form, and how many have been read."""
        for batch, n_done in self.batches(self.needed):
            if batch.num_rows:
                yield self.table(batch, schema, n_done), n_done

    def table(self, batch: Any, schema: Schema, n_done: int) -> Table:
        """A batch with its classes in the model's form; ``n_done`` tells where it ends, for messages."""
        assert self.target is not None
        try:
            labels = self._codes(batch, self.target, schema.classes).astype(np.intp)
            if labels.min() == MISSING:
                raise ValueError(f"column {self.target!r}, the target, has missing values: drop their rows")
            codes = np.empty((batch.num_rows, len(schema.discrete)), np.int32)
            for position, i in enumerate(schema.discrete):
                codes[:, position] = self._codes(batch, self.columns[i], schema.levels_of(i))
            return table_of(schema, _floats(batch, [self.columns[i] for i in schema.continuous]), codes, labels)
        except ValueError as error:
            raise ValueError(f"in the batch that ends with row {n_done}: {error}") from None

    def group_numbers(self, batch: Any) -> NDArray[np.uint64]:
        """For each row a number of its group, the same in every batch and every file."""
        assert self.groups is not None
        indices, found = self._encoded(batch, self.groups)
        if (indices == MISSING).any():
            raise ValueError(f"column {self.groups!r}, the groups, has missing values: drop their rows")
        digests = [blake2b(_text(group).encode(), digest_size=8).digest() for group in found]
        return np.array([int.from_bytes(digest) for digest in digests], np.uint64)[indices]

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[Any, int]]:
        """Record batches of some columns, and how many rows have been read."""
        import pyarrow as pa

        n_done = 0
        scanner = self.dataset.scanner(
            columns=list(columns), batch_size=self.batch_rows, batch_readahead=2, fragment_readahead=1
        )
        try:
            for batch in scanner.to_batches():
                n_done += batch.num_rows
                yield (self._complete(batch) if self.drop_missing else batch), n_done
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"the files cannot be read ({' '.join(str(error).split())[:200]}): correct them, or declare a column "
                "of mere labels categorical"
            ) from None

    def as_frame(self, batch: Any) -> Any:
        """A batch as a table whose columns of text are categorical."""
        import pyarrow as pa

        columns = []
        for name in batch.schema.names:
            column = batch.column(name)
            if name in self.as_text:
                indices, levels = self._encoded(batch, name)
                column = pa.DictionaryArray.from_arrays(
                    pa.array(indices, mask=indices == MISSING), pa.array(levels, pa.string())
                )
            columns.append(column)
        return pa.table(columns, names=batch.schema.names)

    @property
    def needed(self) -> list[str]:
        """All columns that are read."""
        return [*self.columns, *(name for name in (self.target, self.groups) if name is not None)]

    def _discrete(self, categorical_features: Any) -> list[str]:
        """The attributes with levels."""
        import pyarrow as pa

        chosen = chosen_columns(categorical_features, self.columns, len(self.columns)) or []
        named = {self.columns[i] for i in chosen} | self.as_text
        kinds = {name: self.dataset.schema.field(name).type for name in self.columns}
        of_levels = (pa.types.is_dictionary, pa.types.is_string, pa.types.is_large_string)
        return [name for name, kind in kinds.items() if name in named or any(is_one(kind) for is_one in of_levels)]

    def _encoded(self, batch: Any, name: str) -> tuple[NDArray[Any], list[Hashable]]:
        """A column as positions in a list of levels, -1 where it is empty."""
        import pyarrow as pa

        column = batch.column(name)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        found = column.dictionary.to_pylist()
        present = [i for i, level in enumerate(found) if not is_missing(level)]
        place = np.full(len(found) + 1, MISSING)  # the last one is that of no index
        place[present] = np.arange(len(present))
        levels = [_text(found[i]) if name in self.as_text else found[i] for i in present]
        return place[column.indices.cast(pa.int64()).fill_null(MISSING).to_numpy()], levels

    def _codes(self, batch: Any, name: str, levels: Levels) -> NDArray[np.int32]:
        code = {level: i for i, level in enumerate(levels)}
        indices, found = self._encoded(batch, name)
        return np.array([*(code[level] for level in found), MISSING], np.int32)[indices]

    def _complete(self, batch: Any) -> Any:
        """The rows without an empty cell."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kept = np.ones(batch.num_rows, bool)
        for column in batch.columns:
            present = pc.is_valid(column)
            if pa.types.is_floating(column.type):
                present = pc.and_(present, pc.fill_null(pc.invert(pc.is_nan(column)), False))
            kept &= present.to_numpy(zero_copy_only=False)
        return batch if kept.all() else batch.filter(pa.array(kept))


def _dataset(source: Any, as_text: Collection[str]) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError as error:
        raise ImportError("files that do not fit into memory need pyarrow: pip install 'cgnlearn[frames]'") from error

    if isinstance(source, ds.Dataset):
        return source
    paths = _paths(source)
    kinds = {path.suffix.lower() for path in paths}
    if len(kinds) != 1 or not kinds <= set(FORMATS):
        raise ValueError(f"{_what(source)}: all files must end in the same one of {', '.join(FORMATS)}")
    [kind] = kinds
    form: Any = FORMATS[kind]
    if form == "csv":
        import pyarrow.csv as text

        form = ds.CsvFileFormat(
            text.ParseOptions(delimiter="\t" if kind == ".tsv" else ","),
            convert_options=text.ConvertOptions(null_values=NO_VALUE, strings_can_be_null=True),
        )
    try:
        found = ds.dataset([str(path) for path in paths], format=form)
        if FORMATS[kind] == "parquet":  # text is stored as levels mostly, and need not be spelled out row by row
            words = {field.name for field in found.schema if field.type in (pa.string(), pa.large_string())}
            # Pieces of a column at a time, in memory that is used again: whole groups of rows cost a third of the time
            # of reading for memory that must be cleared.
            pieces = ds.ParquetFragmentScanOptions(use_buffered_stream=True, buffer_size=PIECE, pre_buffer=False)
            form = ds.ParquetFileFormat(
                read_options=ds.ParquetReadOptions(dictionary_columns=words), default_fragment_scan_options=pieces
            )
            return ds.dataset([str(path) for path in paths], format=form)
        if FORMATS[kind] != "csv":
            return found
        # A file that begins with whole numbers, or without values, may go on with others.
        wide = [
            field.with_type(
                pa.string() if field.name in as_text else
                pa.float64() if pa.types.is_integer(field.type) or pa.types.is_null(field.type) else field.type
            )
            for field in found.schema
        ]  # fmt: skip
        return ds.dataset([str(path) for path in paths], format=form, schema=pa.schema(wide))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{_what(source)} cannot be read ({' '.join(str(error).split())[:200]})") from None


def _paths(source: Any) -> list[Path]:
    """The files, those of a folder in the order of their names."""
    given = [Path(one) for one in ([source] if isinstance(source, str | Path) else source)]
    found: list[Path] = []
    for path in given:
        inside = (file for file in path.rglob("*") if file.suffix.lower() in FORMATS and not file.name.startswith("."))
        found += sorted(inside) if path.is_dir() else [path]
    if not found:
        raise ValueError(f"{_what(source)} has no files that end in one of {', '.join(FORMATS)}")
    missing = next((path for path in found if not path.exists()), None)
    if missing is not None:
        raise FileNotFoundError(f"{missing} does not exist: give a file or a folder of files")
    return found


def _what(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else "the source"


def _in_order(levels: set[Hashable], name: str) -> Levels:
    if len({isinstance(level, str) for level in levels}) > 1:
        raise ValueError(f"column {name!r} mixes text and other levels: make them all text or all numbers")
    return tuple(sorted(levels)) or NO_LEVELS  # type: ignore[type-var]


def _text(level: Any) -> str:
    """A level as text; a whole number without a decimal point, so that 1 and 1.0 are one level."""
    return f"{level:.0f}" if isinstance(level, float) and level.is_integer() else str(level)


def _floats(batch: Any, names: Sequence[str]) -> NDArray[Any]:
    """Columns of numbers, stored column by column as the files have them: to turn them into rows costs more than to
    count them."""
    import pyarrow as pa

    columns = [batch.column(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        kind = column.type
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        if not any(is_one(kind) for is_one in numeric):
            raise ValueError(f"column {name!r} holds {kind}: turn it into numbers, or name it in categorical_features")
    narrow = bool(columns) and all(column.type == pa.float32() for column in columns)
    values = np.empty((batch.num_rows, len(columns)), np.float32 if narrow else np.float64, order="F")
    for i, column in enumerate(columns):
        numbers = column if pa.types.is_floating(column.type) else column.cast(pa.float64())
        values[:, i] = numbers.to_numpy(zero_copy_only=False)
    return values
