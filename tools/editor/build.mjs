// npm ci && npm run build: writes ui/components/codemirror.js and the licences of what is in it.
import { build } from "esbuild";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const out = new URL("../../ui/components/", import.meta.url).pathname;
const { metafile } = await build({
  entryPoints: ["editor.js"], bundle: true, minify: true, format: "esm", target: "es2022", metafile: true,
  outfile: `${out}codemirror.js`, legalComments: "none",
  banner: { js: "// CodeMirror 6 and its parts, MIT; see codemirror.licences.txt. Built by tools/editor." },
});
const names = new Set(Object.keys(metafile.inputs).flatMap((file) => {
  const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file);
  return found ? [found[1]] : [];
}));
const said = [...names].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const { version } = JSON.parse(readFileSync(`${folder}/package.json`));
  const file = readdirSync(folder).find((f) => /^licen[sc]e/i.test(f));
  return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
writeFileSync(`${out}codemirror.licences.txt`, said.join(`\n${"-".repeat(80)}\n\n`));
