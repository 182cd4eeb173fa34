/** A job's graph: vertices with live figures, coloured by how busy they are; it can be moved, zoomed and tabbed through. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Bottleneck, LEVEL_WORDS, level } from "../bottleneck";
import { count, percent, rate } from "../format";
import type { LayoutAnswer, LayoutRequest, Point } from "../layout-types";
import type { PlanNode, VertexActivity } from "../types";
import { heightFor, useZoom } from "./zoom";

const WIDTH = 236;
const HEIGHT = 112;
const MOST_MOVING = 80;
const MOST_LINES = 3;

// --- layout ---
let worker: Worker | undefined;
let requests = 0;

function layoutOf(nodes: PlanNode[], vertical: boolean): Promise<LayoutAnswer> {
  const own = document.querySelector<HTMLScriptElement>("script[data-layout]")!;
  worker ??= new Worker(own.dataset["layout"]!, { type: "module" });
  const id = ++requests;
  const request: LayoutRequest = {
    id,
    vertical,
    nodes: nodes.map(node => ({ id: node.id, width: WIDTH, height: HEIGHT })),
    edges: edgesOf(nodes).map(({ id, from, to }) => ({ id, from, to })),
  };
  const working = worker;
  return new Promise((resolve, reject) => {
    const heard = (event: MessageEvent<LayoutAnswer>) => {
      if (event.data.id !== id) return;
      working.removeEventListener("message", heard);
      resolve(event.data);
    };
    working.addEventListener("message", heard);
    working.addEventListener("error", event => reject(new Error(event.message)), { once: true });
    working.postMessage(request);
  });
}

interface Edge {
  id: string;
  from: string;
  to: string;
  label: string;
}

function edgesOf(nodes: PlanNode[]): Edge[] {
  const known = new Set(nodes.map(node => node.id));
  return nodes.flatMap(node =>
    (node.inputs ?? [])
      .filter(input => known.has(input.id))
      .map(input => ({
        id: `${input.id}-${node.id}-${input.num}`,
        from: input.id,
        to: node.id,
        label: input.ship_strategy,
      })),
  );
}

function useLayout(nodes: PlanNode[], vertical: boolean): { layout: LayoutAnswer | null; error: string } {
  const [layout, setLayout] = useState<LayoutAnswer | null>(null);
  const [error, setError] = useState("");
  const shape = nodes.map(node => `${node.id}<${(node.inputs ?? []).map(input => input.id).join()}`).join(";");
  useEffect(() => {
    let wanted = true;
    layoutOf(nodes, vertical).then(
      answer => wanted && setLayout(answer),
      (reason: unknown) => wanted && setError(String(reason)),
    );
    return () => {
      wanted = false;
    };
  }, [shape, vertical]);
  return { layout, error };
}

// --- what operators a vertex has, out of the HTML that Flink's interface gives ---
export function operatorsOf(node: PlanNode): string[] {
  const text = new DOMParser().parseFromString(node.description.replaceAll(/<br\s*\/?>/g, "\n"), "text/html");
  const lines = (text.body.textContent ?? "").split("\n").map(line => line.replace(/^[\s\u00a0]*(\+- )?/, "").trim());
  return lines.filter(line => line !== "");
}

// --- drawing ---
interface Props {
  nodes: PlanNode[];
  activities: Map<string, VertexActivity>;
  states: Map<string, string>;
  bottleneck: Bottleneck | null;
  selected?: string | undefined;
  onSelect?: (id: string) => void;
}

export function Graph({ nodes, activities, states, bottleneck, selected, onSelect }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [vertical, setVertical] = useState(() => window.innerWidth < 700);
  useEffect(() => {
    const narrow = matchMedia("(max-width: 700px)");
    const turn = () => setVertical(narrow.matches);
    narrow.addEventListener("change", turn);
    return () => narrow.removeEventListener("change", turn);
  }, []);
  const { layout, error } = useLayout(nodes, vertical);
  const source = nodes.find(node => node.inputs === undefined)?.id ?? "";
  const zoom = useZoom(box, layout, layout?.nodes[selected ?? bottleneck?.id ?? source] ?? null);
  const edges = useMemo(() => edgesOf(nodes), [nodes]);
  const height = `${heightFor(layout, box.current?.clientWidth ?? 0)}px`;
  if (error !== "") return <p class="nothing">The graph cannot be laid out: {error}</p>;
  const transform = `translate(${zoom.view.x}px, ${zoom.view.y}px) scale(${zoom.view.scale})`;
  return (
    <div class="graph">
      <div class="graph-box" ref={box} style={{ height }} {...zoom.handlers}>
        {layout !== null && (
          <div class="graph-plane" style={{ width: `${layout.width}px`, height: `${layout.height}px`, transform }}>
            <svg width={layout.width} height={layout.height} aria-hidden="true">
              {edges.map(edge => (
                <EdgeLine
                  key={edge.id}
                  edge={edge}
                  points={layout.edges[edge.id] ?? []}
                  flow={flow(edge, nodes, activities)}
                  moving={edges.length <= MOST_MOVING}
                />
              ))}
            </svg>
            {nodes.map(node => (
              <Node
                key={node.id}
                node={node}
                place={layout.nodes[node.id]}
                activity={activities.get(node.id)}
                state={states.get(node.id)}
                isBottleneck={bottleneck?.id === node.id}
                selected={selected === node.id}
                onSelect={onSelect}
              />
            ))}
          </div>
        )}
      </div>
      <div class="graph-tools">
        <button type="button" onClick={zoom.closer} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={zoom.farther} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={zoom.fit}>
          Fit
        </button>
      </div>
      {activities.size > 0 && <Legend />}
    </div>
  );
}

function Legend() {
  return (
    <ul class="graph-legend" aria-label="Colours">
      <li>
        <span class="swatch busy" aria-hidden="true" /> busy
      </li>
      <li>
        <span class="swatch held" aria-hidden="true" /> back-pressured
      </li>
      <li>
        <span class="swatch idle" aria-hidden="true" /> idle
      </li>
    </ul>
  );
}

/** Records a second along an edge: what the receiver gets, if this is all of it, else what the sender sends. */
function flow(edge: Edge, nodes: PlanNode[], activities: Map<string, VertexActivity>): number | null {
  const [from, to] = [activities.get(edge.from), activities.get(edge.to)];
  const alone = nodes.find(node => node.id === edge.to)?.inputs?.length === 1;
  if (alone && to !== undefined) return to["records-in-per-second"];
  return from === undefined ? null : from["records-out-per-second"];
}

function EdgeLine({
  edge,
  points,
  flow,
  moving,
}: {
  edge: Edge;
  points: Point[];
  flow: number | null;
  moving: boolean;
}) {
  if (points.length === 0) return null;
  const middle = points[Math.floor(points.length / 2)]!;
  const thickness = 1.5 + Math.min(4, Math.log10(1 + (flow ?? 0)));
  const flows = flow !== null && flow > 0;
  return (
    <g class={flows && moving ? "edge flows" : "edge"}>
      <path d={curve(points)} style={{ strokeWidth: `${thickness}px` }} />
      <text x={middle.x} y={middle.y - 5} text-anchor="middle">
        {edge.label}
      </text>
      {flow !== null && (
        <text x={middle.x} y={middle.y + 13} text-anchor="middle" class="edge-rate">
          {rate(flow)}
        </text>
      )}
    </g>
  );
}

function curve(points: Point[]): string {
  const [start, ...others] = points as [Point, ...Point[]];
  let path = `M${start.x},${start.y}`;
  for (let index = 0; index < others.length - 1; index++) {
    const [point, next] = [others[index]!, others[index + 1]!];
    path += ` Q${point.x},${point.y} ${(point.x + next.x) / 2},${(point.y + next.y) / 2}`;
  }
  const end = others[others.length - 1] ?? start;
  return `${path} L${end.x},${end.y}`;
}

interface NodeProps {
  node: PlanNode;
  place: Point | undefined;
  activity: VertexActivity | undefined;
  state: string | undefined;
  isBottleneck: boolean;
  selected: boolean;
  onSelect?: ((id: string) => void) | undefined;
}

function Node({ node, place, activity, state, isBottleneck, selected, onSelect }: NodeProps) {
  const operators = useMemo(() => operatorsOf(node), [node.description]);
  if (place === undefined) return null;
  const shown = operators.length > MOST_LINES ? operators.slice(0, MOST_LINES - 1) : operators;
  const rest = operators.length - shown.length;
  const heat = level(activity);
  const style = {
    left: `${place.x - WIDTH / 2}px`,
    top: `${place.y - HEIGHT / 2}px`,
    width: `${WIDTH}px`,
    height: `${HEIGHT}px`,
  };
  return (
    <button
      type="button"
      class={`node ${heat} ${isBottleneck ? "bottleneck" : ""}`}
      style={style}
      aria-pressed={onSelect ? selected : undefined}
      title={operators.join("\n")}
      onClick={() => onSelect?.(node.id)}
    >
      <span class="node-names">
        {shown.map((name, index) => (
          <span key={index}>{name}</span>
        ))}
        {rest > 0 && <span class="muted">and {rest} more</span>}
      </span>
      <span class="node-foot">
        <span class="node-line">
          <span class="muted">×{node.parallelism}</span>
          {state !== undefined && state !== "RUNNING" && <span class="node-state">{state.toLowerCase()}</span>}
          {isBottleneck && <span class="node-bottleneck">bottleneck</span>}
          {activity !== undefined && (
            <span class="node-rates">
              {node.inputs !== undefined && `${count(activity["records-in-per-second"])} → `}
              {rate(activity["records-out-per-second"])}
            </span>
          )}
        </span>
        {activity !== undefined && <Shares activity={activity} />}
        {activity !== undefined && <span class="hidden">{told(activity)}</span>}
      </span>
    </button>
  );
}

function told(activity: VertexActivity): string {
  return `busy ${percent(activity.busy)}, back-pressured ${percent(activity["back-pressured"])}: ${LEVEL_WORDS[level(activity)]}`;
}

/** Busy, held back, idle: as parts of one bar. */
export function Shares({ activity }: { activity: { busy: number; "back-pressured": number } }) {
  const { busy } = activity;
  const held = Math.min(activity["back-pressured"], 1 - busy);
  return (
    <span class="shares">
      <span class="bar" aria-hidden="true">
        <span class="busy" style={{ width: `${busy * 100}%` }} />
        <span class="held" style={{ width: `${held * 100}%` }} />
      </span>
      <span class="bar-text">{percent(busy)}</span>
    </span>
  );
}
