// Starts the browser of the tests: Chromium, at CHROMIUM or /usr/bin/chromium.

import { chromium } from "playwright-core";

/** Returns a new browser. */
export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Returns a page at `width` with `colours` ("light" or "dark"), and the list of what must not happen on it: errors of
 * the console and of scripts, and requests to another host than `address`. */
export async function open(browser, address, { width = 1280, height = width < 500 ? 844 : 800, colours = "light", path = "" } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: colours, reducedMotion: "reduce" });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`script: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(address).host) faults.push(`request: ${request.url()}`);
  });
  await page.goto(address + path);
  await page.waitForSelector(".cm-content");
  return { page, faults, close: () => context.close() };
}
