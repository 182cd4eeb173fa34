// Bundles the pages into a folder that the server serves: `node build.mjs [folder]`.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = resolve(process.argv[2] ?? join(here, "../penstock/service/rest/web"));
const draft = `${target}.draft-${process.pid}`;

/** Names of built files, by the source that each came from. */
async function bundled() {
  const { metafile } = await build({
    absWorkingDir: here,
    entryPoints: ["src/main.tsx", "src/layout.ts", "src/theme.ts", "src/styles.css"],
    outdir: join(draft, "assets"),
    entryNames: "[name]-[hash]",
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    metafile: true,
  });
  const outputs = Object.entries(metafile.outputs).filter(([, output]) => output.entryPoint);
  return Object.fromEntries(outputs.map(([file, output]) => [output.entryPoint, `assets/${file.split("/").pop()}`]));
}

async function icon() {
  const data = await readFile(join(here, "src/icon.svg"));
  const name = `assets/icon-${createHash("sha256").update(data).digest("hex").slice(0, 8).toUpperCase()}.svg`;
  await copyFile(join(here, "src/icon.svg"), join(draft, name));
  return name;
}

/** The licences of everything that is bundled go with it. */
async function licences() {
  const { dependencies } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  const packages = [...Object.keys(dependencies), "@dagrejs/graphlib"];
  const texts = packages.map(async name => {
    const text = await readFile(join(here, "node_modules", name, "LICENSE"), "utf8");
    return `${name}\n${"=".repeat(name.length)}\n\n${text.trim()}\n`;
  });
  return (await Promise.all(texts)).join("\n\n");
}

await rm(draft, { recursive: true, force: true });
await mkdir(join(draft, "assets"), { recursive: true });
const files = await bundled();
const page = (await readFile(join(here, "index.html"), "utf8"))
  .replace("%MAIN%", files["src/main.tsx"])
  .replace("%LAYOUT%", files["src/layout.ts"])
  .replace("%THEME%", files["src/theme.ts"])
  .replace("%STYLE%", files["src/styles.css"])
  .replace("%ICON%", await icon());
await writeFile(join(draft, "assets", "licences.txt"), await licences());
await writeFile(join(draft, "index.html"), page);
await rm(target, { recursive: true, force: true });
await rename(draft, target);
console.log(`built into ${target}`);
