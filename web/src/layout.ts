/** A worker that lays out graphs: a graph of hundreds of vertices takes a while, and the page is to stay alive. */
import { graphlib, layout } from "@dagrejs/dagre";
import type { LayoutAnswer, LayoutRequest } from "./layout-types";

self.onmessage = (event: MessageEvent<LayoutRequest>) => {
  self.postMessage(laidOut(event.data));
};

function laidOut(request: LayoutRequest): LayoutAnswer {
  const graph = new graphlib.Graph({ multigraph: true });
  graph.setGraph({
    rankdir: request.vertical ? "TB" : "LR",
    nodesep: request.vertical ? 24 : 28,
    ranksep: request.vertical ? 70 : 110,
    marginx: 16,
    marginy: 16,
    ranker: request.nodes.length > 200 ? "tight-tree" : "network-simplex",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of request.nodes) graph.setNode(node.id, { width: node.width, height: node.height });
  for (const edge of request.edges) {
    graph.setEdge(edge.from, edge.to, { width: 70, height: 18, labelpos: "c" }, edge.id);
  }
  layout(graph);
  const size = graph.graph() as { width?: number; height?: number };
  return {
    id: request.id,
    width: size.width ?? 0,
    height: size.height ?? 0,
    nodes: Object.fromEntries(
      request.nodes.map(({ id }) => {
        const place = graph.node(id) as { x: number; y: number };
        return [id, { x: place.x, y: place.y }];
      }),
    ),
    edges: Object.fromEntries(
      request.edges.map(({ id, from, to }) => {
        const edge = graph.edge(from, to, id) as { points: { x: number; y: number }[] };
        return [id, edge.points];
      }),
    ),
  };
}
