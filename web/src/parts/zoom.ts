/** Moving and zooming a plane inside a box, with pointer, wheel, pinch and buttons. */
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Point } from "../layout-types";

export interface View {
  x: number;
  y: number;
  scale: number;
}

/** Where a length begins in a box: in the middle if it fits, else so that the wanted place can be seen. */
function placed(box: number, length: number, wanted: number): number {
  if (length <= box) return (box - length) / 2;
  return Math.min(0, Math.max(box - length, box / 2 - wanted));
}

interface Size {
  width: number;
  height: number;
}

const LEAST = 0.05;
const MOST = 2;
const READABLE = 0.55;

/** How high a box of some width has to be for a plane, as far as that is reasonable. */
export function heightFor(plane: Size | null, width: number): number {
  if (plane === null || width === 0) return 240;
  const scale = Math.max(READABLE, Math.min(1, width / plane.width));
  return Math.min(window.innerHeight * 0.46, Math.max(240, plane.height * scale + 60));
}

/** `wanted` is the middle of what has to be seen. */
export function useZoom(box: RefObject<HTMLDivElement | null>, plane: Size | null, wanted: Point | null) {
  const [view, setView] = useState<View>({ x: 0, y: 0, scale: 1 });
  const held = useRef(new Map<number, { x: number; y: number }>());
  const moved = useRef(false);

  const fitted = (whole: boolean): View => {
    const element = box.current!;
    const [width, height] = [element.clientWidth, element.clientHeight];
    if (plane === null || plane.width === 0) return { x: 0, y: 0, scale: 1 };
    const fits = Math.min(1, width / plane.width, height / plane.height);
    const scale = Math.max(LEAST, whole ? fits : Math.max(fits, READABLE));
    return {
      x: placed(width, plane.width * scale, (wanted?.x ?? 0) * scale),
      y: placed(height, plane.height * scale, (wanted?.y ?? 0) * scale),
      scale,
    };
  };
  const around = (factor: number, x: number, y: number) =>
    setView(now => {
      const scale = Math.min(MOST, Math.max(LEAST, now.scale * factor));
      const change = scale / now.scale;
      return { scale, x: x - (x - now.x) * change, y: y - (y - now.y) * change };
    });
  const aroundMiddle = (factor: number) => around(factor, box.current!.clientWidth / 2, box.current!.clientHeight / 2);

  useEffect(() => {
    if (plane !== null) setView(fitted(false));
  }, [plane]);
  useEffect(() => {
    const element = box.current!;
    if (plane === null || wanted === null) return;
    setView(now => {
      const [x, y] = [now.x + wanted.x * now.scale, now.y + wanted.y * now.scale];
      const seen = x > 40 && y > 40 && x < element.clientWidth - 40 && y < element.clientHeight - 40;
      return seen ? now : { ...now, x: now.x + element.clientWidth / 2 - x, y: now.y + element.clientHeight / 2 - y };
    });
  }, [wanted?.x, wanted?.y]);

  useEffect(() => {
    const element = box.current!;
    // Not through the framework, since a handler that keeps the page from scrolling must not be passive.
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaY) < 1) return;
      event.preventDefault();
      const place = element.getBoundingClientRect();
      around(Math.exp(-event.deltaY * 0.0015), event.clientX - place.left, event.clientY - place.top);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const pointers = () => [...held.current.values()];
  return {
    view,
    fit: () => setView(fitted(true)),
    closer: () => aroundMiddle(1.25),
    farther: () => aroundMiddle(0.8),
    handlers: {
      onPointerDown: (event: PointerEvent) => {
        moved.current = false;
        held.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
      },
      onPointerMove: (event: PointerEvent) => {
        const before = held.current.get(event.pointerId);
        if (before === undefined) return;
        const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
        if (!moved.current && Math.hypot(dx, dy) < 4) return;
        if (!moved.current) box.current!.setPointerCapture(event.pointerId);
        moved.current = true;
        const [one, other] = pointers();
        const apart = one && other ? Math.hypot(one.x - other.x, one.y - other.y) : 0;
        held.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
        const [a, b] = pointers();
        if (a && b && apart > 0) {
          const place = box.current!.getBoundingClientRect();
          around(Math.hypot(a.x - b.x, a.y - b.y) / apart, (a.x + b.x) / 2 - place.left, (a.y + b.y) / 2 - place.top);
        } else {
          setView(now => ({ ...now, x: now.x + dx, y: now.y + dy }));
        }
      },
      onPointerUp: (event: PointerEvent) => held.current.delete(event.pointerId),
      onPointerCancel: (event: PointerEvent) => held.current.delete(event.pointerId),
      // A drag that ends on a vertex does not choose it.
      onClickCapture: (event: MouseEvent) => {
        if (moved.current) event.stopPropagation();
        moved.current = false;
      },
      onFocusIn: (event: FocusEvent) => {
        const element = box.current!;
        if (event.target instanceof HTMLElement && event.target.matches(":focus-visible")) {
          // The browser scrolls to what has the focus; the plane moves instead.
          element.scrollTo(0, 0);
          const [node, place] = [event.target.getBoundingClientRect(), element.getBoundingClientRect()];
          const outside =
            node.left < place.left || node.right > place.right || node.top < place.top || node.bottom > place.bottom;
          if (!outside) return;
          const dx = (place.left + place.right) / 2 - (node.left + node.right) / 2;
          const dy = (place.top + place.bottom) / 2 - (node.top + node.bottom) / 2;
          setView(now => ({ ...now, x: now.x + dx, y: now.y + dy }));
        }
      },
    },
  };
}
