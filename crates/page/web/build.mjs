// Builds the page's assets: page.js, page.css, policy.txt and licences.txt. The template, src/page.html, is used as it is. The same sources give the same bytes.
//
//     node build.mjs            writes crates/page/assets
//     node build.mjs --check    fails if the assets there differ from the sources

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "assets");

const common = { absWorkingDir: here, bundle: true, minify: true, write: false, charset: "ascii", legalComments: "none", metafile: true, logLevel: "warning" };
const script = await build({ ...common, entryPoints: ["src/main.js"], format: "iife", target: ["es2022"], outfile: "page.js" });
const style = await build({ ...common, entryPoints: ["src/page.css"], target: ["chrome120", "firefox120", "safari17"], outfile: "page.css" });

const files = {
  "page.js": script.outputFiles[0].text.trim(),
  "page.css": style.outputFiles[0].text.trim(),
  "licences.txt": licences(Object.keys(script.metafile.inputs)),
};

// The policy names the page's script and style by their hashes, so that no other script of a document runs.
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
files["policy.txt"] = `default-src 'none'; script-src ${hash(files["page.js"])}; style-src ${hash(files["page.css"])}; connect-src 'self'; base-uri 'none'; form-action 'none'\n`;

for (const sign of ["</script", "<!--"]) {
  if (files["page.js"].toLowerCase().includes(sign)) fail(`page.js has ${sign} in it, which would end the script early`);
}
if (/\beval\(|new Function\(/.test(files["page.js"])) fail("page.js calls eval, which the page's policy forbids");
if (files["page.css"].toLowerCase().includes("</style")) fail("page.css has </style in it");

if (process.argv.includes("--check")) {
  const different = Object.keys(files).filter((name) => !existsSync(join(assets, name)) || readFileSync(join(assets, name), "utf8") !== files[name]);
  if (different.length > 0) fail(`assets differ from the sources: ${different.join(", ")}. Run \`node build.mjs\`.`);
  console.log("The assets are what the sources give.");
} else {
  mkdirSync(assets, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(assets, name), text);
    console.log(`${name.padEnd(14)} ${(Buffer.byteLength(text) / 1024).toFixed(1)} KB`);
  }
}

// The licence of each package in the bundle, with its version.
function licences(inputs) {
  const names = [...new Set(inputs.map((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]).filter(Boolean))].sort();
  const parts = names.map((name) => {
    const folder = join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) fail(`${name} has no licence file`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return `page.js has these packages in it.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
