/** A table that is sorted by a click on its heads, and draws only those of its many rows that can be seen. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";

export interface Column<R> {
  title: string;
  cell: (row: R) => ComponentChildren;
  /** What the column is sorted by; without it, it is not. */
  by?: (row: R) => number | string;
  number?: boolean;
}

const ROW = 37;
const WHOLE = 60;
const MARGIN = 15;

interface Props<R> {
  label: string;
  columns: Column<R>[];
  rows: R[];
  id: (row: R) => string | number;
  empty?: ComponentChildren;
  selected?: string | number | null;
  onSelect?: (row: R) => void;
}

export function Table<R>({ label, columns, rows, id, empty, selected, onSelect }: Props<R>) {
  const [order, setOrder] = useState<{ column: number; down: boolean } | null>(null);
  const [top, setTop] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => sort(rows, columns, order), [rows, order]);
  if (rows.length === 0) return <>{empty ?? <p class="nothing">Nothing here yet.</p>}</>;

  const many = sorted.length > WHOLE;
  const height = scroller.current?.clientHeight ?? 600;
  const first = many ? Math.max(0, Math.floor(top / ROW) - MARGIN) : 0;
  const last = many ? Math.min(sorted.length, Math.ceil((top + height) / ROW) + MARGIN) : sorted.length;
  const click = (column: number) =>
    setOrder(order?.column === column ? { column, down: !order.down } : { column, down: false });
  return (
    <div
      class={many ? "table many" : "table"}
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label={label}
      onScroll={many ? event => setTop(event.currentTarget.scrollTop) : undefined}
    >
      <table aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th
                key={column.title}
                scope="col"
                class={column.number ? "number" : undefined}
                aria-sort={order?.column === index ? (order.down ? "descending" : "ascending") : undefined}
              >
                {column.by ? (
                  <button type="button" onClick={() => click(index)}>
                    {column.title}
                    <span class="arrow" aria-hidden="true">
                      {order?.column === index ? (order.down ? "↓" : "↑") : ""}
                    </span>
                  </button>
                ) : (
                  column.title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Gap height={first * ROW} />}
          {sorted.slice(first, last).map((row, index) => (
            <tr
              key={id(row)}
              aria-rowindex={first + index + 2}
              class={onSelect ? "choosable" : undefined}
              aria-selected={selected === undefined ? undefined : selected === id(row)}
              onClick={onSelect ? () => onSelect(row) : undefined}
            >
              {columns.map(column => (
                <td key={column.title} class={column.number ? "number" : undefined}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
          {last < sorted.length && <Gap height={(sorted.length - last) * ROW} />}
        </tbody>
      </table>
    </div>
  );
}

function Gap({ height }: { height: number }) {
  return (
    <tr class="gap" aria-hidden="true">
      <td style={{ height: `${height}px` }} />
    </tr>
  );
}

function sort<R>(rows: R[], columns: Column<R>[], order: { column: number; down: boolean } | null): R[] {
  const by = order === null ? undefined : columns[order.column]?.by;
  if (by === undefined || order === null) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [by(one), by(other)];
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
}

export function KeyValues({ label, rows }: { label: string; rows: [string, ComponentChildren][] }) {
  return (
    <Table
      label={label}
      columns={[
        { title: "Name", cell: ([name]) => <code>{name}</code>, by: ([name]) => name },
        { title: "Value", cell: ([, value]) => <span class="value">{value}</span> },
      ]}
      rows={rows}
      id={([name]) => name}
    />
  );
}
