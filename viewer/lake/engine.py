# SPDX-License-Identifier: Apache-2.0
# Runs a query in DuckDB for `gpumemtrace sql`, which starts it: statements that prepare, a zero, the query, on stdin.
# On descriptor 3 a line of names and types, then a line for each row, as JSON arrays; the last line is an object with the number of
# rows, or with an error and an exit code. What others print on stdout is no part of that. Exit code 96: no DuckDB.
import json
import os
import re
import sys

sys.path[:] = [p for p in sys.path if p not in ("", ".")]
try:
    import duckdb
except ImportError:
    sys.exit(96)


def cell(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if type(value).__name__ == "Decimal":
        return float(value)
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, default=str)
    return value.hex() if isinstance(value, bytes) else str(value)


def run(connection, query):
    """A time with a zone becomes text: as a Python object it would need one more package."""
    answer = connection.execute(query)
    columns = [(c[0], str(c[1])) for c in answer.description or ()]
    zoned = [name for name, kind in columns if kind == "TIMESTAMP WITH TIME ZONE"]
    if zoned:
        quoted = ['"' + name.replace('"', '""') + '"' for name in zoned]
        texts = ", ".join(f"cast({name} as varchar) as {name}" for name in quoted)
        answer = connection.execute(f"select * replace ({texts}) from ({query.strip().rstrip(';')})")
    return columns, answer


def reach(connection, protocol):
    """A lake elsewhere is read through fsspec where it is installed (s3fs and its like know how this machine signs in), else by
    DuckDB itself."""
    try:
        import fsspec
        connection.register_filesystem(fsspec.filesystem(protocol))
    except (ImportError, ValueError):
        pass


def make_tables(connection, prepare):
    """A table of a lake elsewhere may have no files; but a lake without any recording is none."""
    place = re.search(r"read_parquet\('((\w+)://.*?)/\w+(?:/\*)+\.parquet'", prepare)
    if not place:
        return connection.execute(prepare)
    reach(connection, place[2])
    found = False
    for statement in connection.extract_statements(prepare):
        try:
            connection.execute(statement)
            found = found or "read_parquet" in statement.query
        except duckdb.Error as error:
            if "httpfs" in str(error):
                raise OSError(f"{place[1]} cannot be read: DuckDB cannot fetch its extension httpfs here. pip install s3fs (gs: gcsfs, abfs: adlfs) "
                              "does without it") from None
            if "No files found" not in str(error):
                raise
    if not found:
        raise OSError(f"{place[1]} is no lake: it has no table with a file")


def say(request, out):
    prepare, query = request.split("\0")
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    make_tables(connection, prepare)
    columns, found = run(connection, query)
    out.write(json.dumps(columns) + "\n")
    count = 0
    while rows := found.fetchmany(10000) if columns else ():
        out.writelines(json.dumps([cell(v) for v in row]) + "\n" for row in rows)
        count += len(rows)
    out.write(json.dumps({"rows": count}) + "\n")


def words(error):
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Traceback", "File "))]
    return " ".join(lines[:3]) or type(error).__name__


def main():
    with os.fdopen(3, "w", encoding="ascii") as out:
        try:
            say(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"), out)
        except Exception as error:  # of DuckDB, or of the file system that it reads through
            unreadable = isinstance(error, (OSError, MemoryError, duckdb.IOException, duckdb.OutOfMemoryException))
            out.write(json.dumps({"error": words(error), "code": 3 if unreadable else 2}) + "\n")


main()
