// Takes pictures of the page's states, to look at.
//
//     node test/pictures.mjs FOLDER
//
// With PAGE_FILE, it takes one picture of that page, with an operator of its plan pointed at: the picture of the README.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { launch, open } from "./browser.mjs";
import { serve } from "./serve.mjs";

const folder = process.argv[2];
// `node --test` starts each file of this folder, without a folder for pictures.
if (!folder) process.exit(0);
mkdirSync(folder, { recursive: true });
const browser = await launch();
if (process.env.PAGE_FILE) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await page.goto(`file://${resolve(process.env.PAGE_FILE)}`);
  await page.locator("#columns").getByText("math.divide").first().hover();
  await page.waitForTimeout(200);
  await page.screenshot({ path: join(folder, "page.png") });
  await browser.close();
  process.exit(0);
}
const { server, address } = await serve();

const asPointed = async (page) => {
  await page.locator(".cm-line", { hasText: "where(" }).first().scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector("#editor").scrollIntoView());
  const box = await page.locator(".cm-content").getByText("exp", { exact: false }).first().boundingBox();
  await page.mouse.move(box.x + 8, box.y + 8);
  await page.waitForTimeout(150);
};
const broken = async (page) => {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("\nlet bad = oops");
  await page.waitForTimeout(900);
};
const states = {
  file: ["/quadratic.html", async () => {}],
  pointed: ["/quadratic.html", asPointed],
  server: ["/", async () => {}],
  broken: ["/", broken],
  tiles: ["/tiles.html", async () => {}],
  hostile: ["/hostile.html", async () => {}],
  panels: ["/quadratic.html", async (page) => {
    for (const name of ["Tests", "Times", "Frame"]) await page.getByRole("tab", { name, exact: true }).click();
  }],
  hover: ["/quadratic.html", async (page) => {
    const box = await page.locator(".cm-content").getByText("math.sqrt").boundingBox();
    await page.mouse.move(box.x + 20, box.y + 8);
    await page.waitForTimeout(700);
  }],
  problem: ["/", async (page) => {
    await broken(page);
    await page.locator(".cm-lint-marker-error").hover();
    await page.waitForTimeout(700);
  }],
  pinned: ["/quadratic.html", async (page) => {
    await page.locator(".line.linked", { hasText: "math.divide" }).first().click();
    await page.locator("#panel-bar").getByRole("tab", { name: "Times" }).click();
  }],
  signature: ["/", async (page) => {
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("let e = math.exp(");
    await page.waitForTimeout(600);
  }],
  completion: ["/", async (page) => {
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("let e = ma");
    await page.waitForTimeout(500);
  }],
};
const only = process.argv.slice(3);
for (const [name, [path, act]] of Object.entries(states)) {
  if (only.length > 0 && !only.includes(name)) continue;
  for (const width of [1280, 390]) {
    for (const colours of ["light", "dark"]) {
      if (colours === "dark" && !["pointed", "broken", "panels"].includes(name)) continue;
      const { page, faults, close } = await open(browser, address, { path, width, colours });
      await act(page);
      await page.waitForTimeout(200);
      await page.screenshot({ path: join(folder, `${name}-${width}-${colours}.png`), fullPage: width < 500 });
      if (faults.length > 0) console.log(name, width, faults.slice(0, 4));
      await close();
    }
  }
}
await browser.close();
server.close();
