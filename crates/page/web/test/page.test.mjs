// Tests of the page in a browser, with the mock's data. With PAGE_FILE=/path/to/page.html or
// PAGE_SERVER=http://127.0.0.1:8080/ the same checks run against real pages as well.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { ticks } from "../src/axis.js";
import { innermost } from "../src/link.js";
import { withLineFeeds } from "../src/offsets.js";
import { launch, open } from "./browser.mjs";
import { quadratic } from "./mock.mjs";
import { page as document_, serve } from "./serve.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// A model for real servers, with numeric inputs and outputs, a branch and a test.
const MODEL = `input a, b: f64
output y = if a > 0.0 then math.exp(-a) * b else a / (b + 2.0)
output z = math.sqrt(a) - b
`;
const HOSTILE = '# </script><script>window.broken = 1</script>\noutput y = "<img src=x onerror=window.broken=1>" + <b>\n';

let mock;
let browser;
const folder = mkdtempSync(join(tmpdir(), "page-"));
before(async () => {
  writeFileSync(join(folder, "quadratic.html"), document_(quadratic).html);
  mock = await serve();
  browser = await launch();
});
after(async () => {
  await browser.close();
  mock.server.close();
  rmSync(folder, { recursive: true });
});

const fragment = (text) => `#text=${encodeURIComponent(text)}`;
const files = { mock: () => pathToFileURL(join(folder, "quadratic.html")).href };
if (process.env.PAGE_FILE) files.real = () => pathToFileURL(process.env.PAGE_FILE).href;
const servers = { mock: () => ({ address: `${mock.address}/`, model: quadratic.text }) };
if (process.env.PAGE_SERVER) servers.real = () => ({ address: process.env.PAGE_SERVER, model: MODEL });

const pages = {};
for (const [name, address] of Object.entries(files)) pages[`${name} file`] = () => ({ address: address() });
for (const [name, target] of Object.entries(servers)) {
  pages[`${name} server`] = () => ({ address: target().address, path: fragment(target().model) });
}

const linked = ".line.linked";

async function start(target, options = {}) {
  const { address, path = "" } = target();
  const found = await open(browser, address, { path, ...options });
  await found.page.waitForSelector(linked);
  await settle(found.page);
  return found;
}

// Waits until no request is under way and the page has drawn.
async function settle(page, milliseconds = 150) {
  await page.waitForTimeout(milliseconds);
  await page.waitForLoadState("networkidle");
}

/** Returns the numbers of marked lines in the shown linked columns, and of marked parts in the text. */
function marks(page) {
  return page.evaluate(() => {
    const columns = [...document.querySelectorAll(".column")].filter((column) => column.querySelector(".line.linked"));
    return {
      columns: columns.map((column) => column.querySelectorAll(".line.marked").length),
      text: document.querySelector("#editor").shadowRoot.querySelectorAll(".cm-marked").length,
      selected: document.querySelectorAll('.line.marked[aria-selected="true"]').length,
    };
  });
}

const everywhere = ({ columns, text }) => columns.length > 0 && columns.every((count) => count > 0) && text > 0;

async function axe(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const words = bad.map(({ id, nodes }) => `${where}: ${id}: ${nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.failureSummary}`).join("\n")}`);
  assert.deepEqual(words, []);
}

for (const [name, target] of Object.entries(pages)) {
  describe(name, () => {
    test("pointing at an operator marks its lines in each linked column", async () => {
      const { page, faults, close } = await start(target);
      let seen = false;
      // A line of the first column shows where an operator is that is in every column.
      const lines = page.locator(".column:has(.line.linked)").first().locator(linked);
      const count = await lines.count();
      for (let index = 0; index < Math.min(count, 60) && !seen; index += 1) {
        await lines.nth(index).hover();
        await page.waitForTimeout(40);
        if (!everywhere(await marks(page))) continue;
        const parts = page.locator(".cm-marked");
        for (let part = 0; part < Math.min(await parts.count(), 3) && !seen; part += 1) {
          const box = await parts.nth(part).boundingBox();
          await page.mouse.move(600, 15);
          await page.waitForTimeout(40);
          assert.equal((await marks(page)).text, 0, "marks go when the pointer leaves");
          await page.mouse.move(box.x + 4, box.y + box.height / 2);
          await page.waitForTimeout(60);
          seen = everywhere(await marks(page));
        }
      }
      assert.ok(seen, "no operator is marked in every linked column");
      const found = await marks(page);
      assert.equal(found.selected, found.columns.reduce((sum, count) => sum + count, 0));
      assert.match(await page.locator("#marked-label").textContent(), /\S/);
      const inView = await page.evaluate(() => [...document.querySelectorAll(".column")].filter((column) => column.querySelector(".line.linked")).map((column) => {
        const outer = column.querySelector(".scroller").getBoundingClientRect();
        return [...column.querySelectorAll(".line.marked")].some((line) => {
          const inner = line.getBoundingClientRect();
          return inner.bottom > outer.top && inner.top < outer.bottom;
        });
      }));
      assert.ok(inView.every(Boolean), "each column scrolls to a marked line");
      assert.deepEqual(faults, []);
      await close();
    });

    test("the keyboard alone marks, pins and lifts", async () => {
      const { page, faults, close } = await start(target);
      // Tab reaches the list of lines.
      for (let count = 0; count < 60; count += 1) {
        await page.keyboard.press("Tab");
        if (await page.evaluate(() => document.activeElement.matches(".column .scroller") && Boolean(document.activeElement.querySelector(".line.linked")))) break;
      }
      let seen = everywhere(await marks(page));
      for (let count = 0; count < 80 && !seen; count += 1) {
        await page.keyboard.press("ArrowDown");
        await page.waitForTimeout(20);
        seen = everywhere(await marks(page));
      }
      assert.ok(seen, "no line of the column marks lines everywhere");
      await page.waitForTimeout(400);
      assert.match(await page.locator("#live").textContent(), /\d+ lines? in /);
      const before = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
      if ((await page.locator(".column:has(.line.linked)").count()) > 1) {
        await page.keyboard.press("ArrowRight");
        await page.waitForTimeout(40);
        assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), before);
        assert.ok(everywhere(await marks(page)), "the next column keeps the mark");
      }
      await page.keyboard.press("Enter");
      await page.waitForTimeout(40);
      assert.match(await page.locator("#marked-label").textContent(), /pinned/);
      await page.locator("#tools button").last().hover();
      assert.ok((await marks(page)).text > 0, "a pinned mark stays");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await page.waitForTimeout(40);
      assert.equal((await marks(page)).text, 0);

      // The cursor of the editor marks.
      await page.locator(".cm-content").focus();
      await page.keyboard.press("Control+Home");
      seen = false;
      for (let count = 0; count < 300 && !seen; count += 1) {
        await page.keyboard.press("ArrowRight");
        if (count % 3 === 0) seen = everywhere(await marks(page));
      }
      assert.ok(seen, "no place of the cursor marks lines everywhere");
      assert.deepEqual(faults, []);
      await close();
    });

    test("boxes of the frame, work and times are linked", async () => {
      const { page, faults, close } = await start(target);
      for (const [tab, item] of [["Frame", ".slot.linked"], ["Times", ".time.linked"]]) {
        const found = page.locator("#panel-bar").getByRole("tab", { name: tab, exact: true });
        if ((await found.count()) === 0) continue;
        if ((await found.getAttribute("aria-selected")) === "false") await found.click();
        if ((await page.locator(item).count()) === 0) continue;
        await page.locator(item).last().hover();
        await page.waitForTimeout(60);
        const { columns, text } = await marks(page);
        assert.ok(text > 0 || columns.some((count) => count > 0), `${tab} marks nothing`);
        await page.mouse.move(600, 15);
        await page.waitForTimeout(60);
      }
      assert.deepEqual(faults, []);
      await close();
    });

    for (const width of [1280, 390]) {
      for (const colours of ["light", "dark"]) {
        test(`axe finds nothing serious at ${width}, ${colours}`, async () => {
          const { page, faults, close } = await start(target, { width, colours });
          await axe(page, "start");
          await page.locator(linked).first().hover();
          await page.waitForTimeout(60);
          await axe(page, "marked");
          for (const bar of ["#stage-bar", "#panel-bar"]) {
            const tabs = page.locator(`${bar} [role=tab]`);
            for (let index = 0; index < await tabs.count(); index += 1) {
              if ((await tabs.nth(index).getAttribute("aria-selected")) === "false") await tabs.nth(index).click();
              if (index % 3 === 2 || width === 390) await axe(page, `${bar} tab ${index}`);
            }
          }
          if (width === 390) {
            const wide = await page.evaluate(() => document.documentElement.scrollWidth);
            assert.ok(wide <= width, `the page is ${wide} pixels wide`);
          }
          assert.deepEqual(faults, []);
          await close();
        });
      }
    }
  });
}

for (const [name, target] of Object.entries(servers)) {
  describe(`${name} server`, () => {
    const page_ = () => ({ address: target().address, path: fragment(target().model) });

    test("an edit shows an error at its place, a fix removes it, rows change, the plot follows", async () => {
      const { page, faults, close } = await start(page_);
      await page.locator(".cm-content").click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type("\nlet broken = = oops");
      await page.keyboard.press("Escape");
      await page.waitForSelector(".cm-lint-marker-error");
      await page.waitForSelector("#problems li");
      assert.ok((await page.locator(linked).count()) > 0, "the last good stages stay");
      assert.match(await page.locator("#stale").textContent(), /errors/);
      await axe(page, "broken");
      const place = await page.locator(".cm-lintRange-error").first().boundingBox();
      await page.mouse.move(place.x + 3, place.y + 5);
      await page.waitForSelector(".cm-tooltip-lint .cm-problem, .cm-tooltip .cm-problem");
      await page.mouse.move(600, 15);
      for (let count = 0; count < "\nlet broken = = oops".length; count += 1) await page.keyboard.press("Backspace");
      await page.waitForSelector("#stale", { state: "hidden" });
      await page.waitForFunction(() => document.querySelector("#problems").hidden || !document.querySelector("#problems .bad"));

      const outputs = () => page.locator(".rows tbody tr").first().locator("td.number").allTextContents();
      const cell = page.locator(".rows tbody tr").first().locator("input").last();
      await cell.fill("0.25");
      await settle(page, 400);
      const first = await outputs();
      await cell.fill("0.125");
      await settle(page, 400);
      assert.notDeepEqual(await outputs(), first, "the outputs follow the cell");
      const rows = await page.locator(".rows tbody tr").count();
      await page.getByRole("button", { name: "Add a row" }).click();
      assert.equal(await page.locator(".rows tbody tr").count(), rows + 1);
      await settle(page, 400);

      const tab = page.locator("#panel-bar").getByRole("tab", { name: "Plot", exact: true });
      if ((await tab.getAttribute("aria-selected")) === "false") await tab.click();
      await settle(page, 400);
      assert.ok((await page.locator(".plot .curve, .plot .dot").count()) > 0, "there is a curve");
      await page.locator(".points summary").click();
      await page.waitForSelector(".points tbody tr:nth-child(2)");
      assert.deepEqual(faults, []);
      await close();
    });

    test("completion and formatting ask the language server", async () => {
      const { page, faults, close } = await start(page_);
      await page.locator(".cm-content").click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type("\nlet e = math.s");
      await page.waitForSelector(".cm-tooltip-autocomplete li");
      await page.keyboard.press("Escape");
      await page.keyboard.type("qrt(4.0)");
      await settle(page, 500);
      await page.getByRole("button", { name: "Format" }).click();
      await settle(page);
      assert.deepEqual(faults, []);
      await close();
    });

    test("text with markup creates no element", async () => {
      const { page, close } = await open(browser, target().address, { path: fragment(HOSTILE) });
      await settle(page, 600);
      await withoutElements(page);
      await close();
    });
  });
}

async function withoutElements(page) {
  const found = await page.evaluate(() => {
    const roots = [document, document.querySelector("#editor").shadowRoot];
    return {
      broken: globalThis.broken ?? null,
      scripts: roots.flatMap((root) => [...root.querySelectorAll("script")]).length,
      foreign: roots.flatMap((root) => [...root.querySelectorAll("img:not(.cm-widgetBuffer), b, i, iframe, a")]).map((each) => each.outerHTML),
    };
  });
  assert.deepEqual(found, { broken: null, scripts: 2, foreign: [] });
}

test("data with markup creates no element", async () => {
  const { page, faults, close } = await open(browser, mock.address, { path: "/hostile.html" });
  const tabs = page.locator("#panel-bar [role=tab]");
  for (let index = 0; index < await tabs.count(); index += 1) {
    if ((await tabs.nth(index).getAttribute("aria-selected")) === "false") await tabs.nth(index).click();
  }
  await page.locator(".line.linked").first().hover();
  await page.locator(".cm-line").nth(2).hover({ position: { x: 20, y: 8 } });
  await page.waitForSelector(".cm-tooltip .markdown");
  await withoutElements(page);
  await page.locator(".cm-lint-marker-error").hover();
  await page.waitForSelector(".cm-problem");
  await withoutElements(page);
  assert.deepEqual(faults, []);
  await close();
});

test("an answer for an older text is dropped, and a failed request is said in words", async () => {
  const { page, close } = await open(browser, mock.address, { path: "/" });
  let requests = 0;
  await page.route("**/page/explain", async (route) => {
    requests += 1;
    if (requests === 1) await new Promise((resolve) => { setTimeout(resolve, 1200); });
    await route.continue().catch(() => {});
  });
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("let broken = = oops");
  await page.waitForTimeout(450);
  for (let count = 0; count < 4; count += 1) await page.keyboard.press("Backspace");
  await page.keyboard.type("2.0");
  await page.waitForTimeout(1600);
  assert.equal(requests, 2);
  assert.ok(await page.locator("#stale").isHidden(), "the late answer with an error is dropped");

  await page.unroute("**/page/explain");
  await page.route("**/page/explain", (route) => route.abort());
  await page.keyboard.type("5");
  await page.waitForFunction(() => /does not answer/.test(document.querySelector("#message").textContent));
  await page.unroute("**/page/explain");
  await page.route("**/page/explain", (route) => route.fulfill({ status: 413, contentType: "application/problem+json", body: '{"detail":"the text is too long"}' }));
  await page.keyboard.type("5");
  await page.waitForFunction(() => /the text is too long/.test(document.querySelector("#message").textContent));
  await page.unroute("**/page/explain");
  await page.keyboard.type("5");
  await page.waitForFunction(() => /Answered/.test(document.querySelector("#message").textContent));
  assert.ok(await page.locator("#stale").isHidden());
  await close();
});

test("a served model opens, and the link carries the text", async () => {
  const { page, faults, close } = await open(browser, mock.address, { path: `/${fragment("let x = oops")}` });
  await page.waitForSelector("#problems li");
  await page.waitForSelector("select[aria-label='Open a served model'] option[value=roots]", { state: "attached" });
  await page.getByLabel("Open a served model").selectOption("roots");
  await page.waitForSelector(linked);
  await page.getByRole("button", { name: "Copy link" }).click();
  assert.equal(decodeURIComponent(new URL(page.url()).hash), `#text=${quadratic.text}`);
  assert.deepEqual(faults, []);
  await close();
});

test("offsets of a text with CR and LF move to the editor's", () => {
  const span = [7, 10];
  const data = {
    text: "a\r\nb\r\nc d", nodes: [{ id: 0, label: "", spans: [span] }], diagnostics: [{ from: 3, to: 4 }], hovers: [], tests: [], coverage: [{ from: 6, to: 9 }],
  };
  const found = withLineFeeds(data);
  assert.equal(found.text, "a\nb\nc d");
  assert.deepEqual([found.nodes[0].spans[0], found.diagnostics[0], found.coverage[0]], [[5, 8], { from: 2, to: 3 }, { from: 4, to: 7 }]);
});

test("the innermost node is found at a place of the text", () => {
  const spans = [{ id: 0, from: 0, to: 10 }, { id: 1, from: 2, to: 5 }, { id: 2, from: 2, to: 5 }];
  assert.deepEqual(innermost(spans, 3, false), [1, 2]);
  assert.deepEqual(innermost(spans, 5, false), [0]);
  assert.deepEqual(innermost(spans, 5, true), [1, 2]);
  assert.deepEqual(innermost(spans, 11, true), []);
});

test("ticks are round numbers", () => {
  assert.deepEqual(ticks({ low: -1.2, high: 5.1 }, 4), [0, 2, 4]);
  assert.deepEqual(ticks({ low: 0, high: 1 }, 6), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.equal(ticks({ low: 1e-9, high: 2e-9 }, 5).length > 1, true);
});

test("rows of the work are linked", async () => {
  const { page, faults, close } = await open(browser, mock.address, { path: "/tiles.html" });
  await page.locator(".panel-work tbody tr").nth(1).hover();
  await page.waitForTimeout(60);
  assert.ok((await marks(page)).text > 0);
  assert.deepEqual(faults, []);
  await close();
});

test("a stage of 40,000 lines is quick", async () => {
  const { page, faults, close } = await open(browser, mock.address, { path: "/large.html" });
  await page.waitForSelector(".line.linked");
  await page.locator(".column").first().locator(".line.linked").nth(3).hover();
  await page.waitForTimeout(60);
  const milliseconds = await page.evaluate(async () => {
    const lines = [...document.querySelector(".column").querySelectorAll(".line.linked")].slice(4, 14);
    const begin = performance.now();
    for (const [index, line] of lines.entries()) {
      line.dispatchEvent(new MouseEvent("mouseover", { bubbles: true, clientX: 500 + index, clientY: 300 }));
      await new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); });
    }
    return (performance.now() - begin) / lines.length;
  });
  assert.ok((await page.locator(".line").count()) < 10000, "lines are built near the view only");
  assert.ok(milliseconds < 200, `${milliseconds} ms for a mark`);
  const { columns } = await marks(page);
  assert.ok(columns.every((count) => count > 0));
  assert.deepEqual(faults, []);
  await close();
});
