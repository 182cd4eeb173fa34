/** Figures over time. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clock } from "../format";

export interface Line {
  label: string;
  values: (number | null)[];
}

interface Props {
  title: string;
  /** Milliseconds since 1970. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  height?: number;
  /** A value up to which the plot reaches at least. */
  full?: number;
}

const COLOURS = 8;

/** A colour of the style sheet as a canvas understands it. */
function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function options(props: Props, width: number): uPlot.Options {
  const { lines, format } = props;
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--muted"), grid, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height: props.height ?? 150,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { range: plot => span(plot.data[0]) },
      y: { range: (_, low, high) => scale(low, high, props.full ?? 0) },
    },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map(value => clock(value * 1000)), space: 80, size: 26 },
      { ...axis, values: (_, ticks) => ticks.map(format), size: 66, space: 34 },
    ],
    series: [
      {},
      ...lines.map((line, index) => ({
        label: line.label,
        stroke: colour(`--series-${(index % COLOURS) + 1}`),
        width: 1.75,
        dash: index < COLOURS ? undefined : [6, 4],
        points: { show: (plot: uPlot) => plot.data[0].length < 3 },
        ...(lines.length === 1 ? { fill: colour("--series-1-soft") } : {}),
      })),
    ],
  };
}

/** At least a minute. */
function span(times: ArrayLike<number>): [number, number] {
  const last = times[times.length - 1];
  return last === undefined ? [0, 60] : [Math.min(times[0]!, last - 60), last];
}

/** From nothing to a little above the greatest value; event time does not begin at nothing. */
function scale(low: number, high: number, full: number): [number, number] {
  if (low == null || high == null) return [0, full || 1];
  if (low > 1e11) return [low - 1, high + 1];
  const least = Math.min(0, low);
  return high <= least && full === 0 ? [least, least + 1] : [least, Math.max(full, high) * 1.08];
}

export function Plot(props: Props) {
  const { title, times, lines, format } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = lines.map(line => line.label).join("\n");
  const data = useMemo(
    () => [times.map(time => time / 1000), ...lines.map(line => line.values)] as uPlot.AlignedData,
    [times, lines],
  );
  useEffect(() => {
    const element = box.current!;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, element.clientWidth), data, element);
    };
    draw();
    const sizes = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: props.height ?? 150 }),
    );
    sizes.observe(element);
    const themes = new MutationObserver(draw);
    themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const preferred = matchMedia("(prefers-color-scheme: dark)");
    preferred.addEventListener("change", draw);
    return () => {
      sizes.disconnect();
      themes.disconnect();
      preferred.removeEventListener("change", draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [data]);
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div ref={box} class="plot-box" role="img" aria-label={`${title}, plotted over time`} />
      <ul class="legend">
        {lines.map((line, index) => {
          const newest = line.values[line.values.length - 1];
          return (
            <li key={line.label}>
              <span class={`swatch series-${(index % COLOURS) + 1}`} aria-hidden="true" />
              <span class="legend-name">{line.label}</span>
              <b>{newest == null ? "–" : format(newest)}</b>
            </li>
          );
        })}
      </ul>
    </figure>
  );
}
