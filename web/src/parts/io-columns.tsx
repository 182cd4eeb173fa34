/** Columns of a table about what was read and written, of vertices and of subtasks alike. */
import { bytes, count } from "../format";
import type { Io } from "../types";
import type { Column } from "./table";

type Figure = "read-records" | "write-records" | "read-bytes" | "write-bytes";

const TITLES: Record<Figure, string> = {
  "read-records": "Records in",
  "write-records": "Records out",
  "read-bytes": "Bytes in",
  "write-bytes": "Bytes out",
};

export function ioColumns<R extends { metrics: Io }>(...figures: Figure[]): Column<R>[] {
  return figures.map(figure => ({
    title: TITLES[figure],
    cell: row => (figure.endsWith("bytes") ? bytes : count)(row.metrics[figure]),
    by: row => row.metrics[figure],
    number: true,
  }));
}
