/** What the page and its layout worker say to each other. */
export interface LayoutRequest {
  id: number;
  vertical: boolean;
  nodes: { id: string; width: number; height: number }[];
  edges: { id: string; from: string; to: string }[];
}

export interface Point {
  x: number;
  y: number;
}

export interface LayoutAnswer {
  id: number;
  width: number;
  height: number;
  nodes: Record<string, Point>;
  edges: Record<string, Point[]>;
}
