/** Where the reader is: the part of the address behind #, since paths belong to the REST interface. */
import type { ComponentChildren } from "preact";
import { Watched, useWatched } from "./api";

function parts(): string[] {
  return location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter(part => part !== "")
    .map(decodeURIComponent);
}

const place = new Watched(parts());
window.addEventListener("hashchange", () => place.set(parts()));

export function usePlace(): string[] {
  return useWatched(place);
}

export function to(...steps: (string | number)[]): string {
  return `#/${steps.map(step => encodeURIComponent(step)).join("/")}`;
}

export function go(...steps: (string | number)[]): void {
  location.hash = to(...steps);
}

export function Tabs({
  label,
  base,
  tabs,
  current,
}: {
  label: string;
  base: (string | number)[];
  tabs: [id: string, title: ComponentChildren][];
  current: string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([id, title]) => (
        <a key={id} href={to(...base, id)} aria-current={id === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
