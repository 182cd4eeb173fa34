/** A flame graph: which calls a vertex spends its time in. A click on a frame makes it the whole. */
import { useState } from "preact/hooks";
import { count, percent } from "../format";
import type { FlameNode } from "../types";

const ROW = 22;
const LEAST = 0.002;
const DEEPEST = 120;

interface Frame {
  node: FlameNode;
  left: number;
  width: number;
  depth: number;
  path: FlameNode[];
}

function frames(root: FlameNode): Frame[] {
  const found: Frame[] = [];
  const add = (node: FlameNode, left: number, width: number, depth: number, path: FlameNode[]) => {
    if (width < LEAST || depth > DEEPEST) return;
    const here = [...path, node];
    found.push({ node, left, width, depth, path: here });
    let next = left;
    for (const child of node.children ?? []) {
      const share = (width * child.value) / (node.value || 1);
      add(child, next, share, depth + 1, here);
      next += share;
    }
  };
  add(root, 0, 1, 0, []);
  return found;
}

/** The same function has the same colour, wherever it is. */
function hue(name: string): number {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.charCodeAt(0)) % 997;
  return 8 + (sum % 44);
}

export function Flame({ root }: { root: FlameNode }) {
  const [path, setPath] = useState<string[]>([]);
  let top = root;
  for (const name of path) top = top.children?.find(child => child.name === name) ?? top;
  const shown = frames(top);
  const depth = Math.max(0, ...shown.map(frame => frame.depth)) + 1;
  const choose = (frame: Frame) => setPath([...path, ...frame.path.slice(1).map(node => node.name)]);
  return (
    <div class="flame">
      <div class="row">
        <button type="button" disabled={path.length === 0} onClick={() => setPath([])}>
          Whole graph
        </button>
        <span class="muted">
          {count(root.value)} samples{path.length > 0 && `; shown: ${percent(top.value / (root.value || 1))} of them`}
        </span>
      </div>
      <div class="flame-box" style={{ height: `${depth * ROW}px` }}>
        {shown.map((frame, index) => (
          <button
            type="button"
            key={index}
            class="frame"
            title={`${frame.node.name}: ${percent(frame.node.value / (root.value || 1))}`}
            style={{
              left: `${frame.left * 100}%`,
              width: `${frame.width * 100}%`,
              top: `${frame.depth * ROW}px`,
              background: `hsl(${hue(frame.node.name)} 80% 72%)`,
            }}
            onClick={() => choose(frame)}
          >
            {frame.node.name}
          </button>
        ))}
      </div>
    </div>
  );
}
