// Requests of the page to its own server, and the loop that explains the text while it is edited.

import { debounce } from "./dom.js";

/** A request that failed, with a message for the status line. */
export class RequestError extends Error {}

/** The server of the page. */
export class Server {
  constructor(token) {
    this.token = token;
  }

  /** Posts `body` as JSON and returns the answer. */
  async post(path, body, signal) {
    return this.#request(path, { method: "POST", body: JSON.stringify(body), signal });
  }

  async get(path) {
    return this.#request(path, { method: "GET" });
  }

  /** Asks the language server for `method`, with the present text. Returns the result. */
  async language(text, method, params) {
    const answer = await this.post("/page/lsp", { text, method, params });
    return answer.result ?? null;
  }

  async #request(path, options) {
    let response;
    try {
      response = await fetch(path, {
        ...options, headers: { "content-type": "application/json", "x-cembra-token": this.token },
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new RequestError("The server does not answer.");
    }
    let answer = null;
    try {
      answer = await response.json();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      // A body that is not JSON: the status says enough.
    }
    if (!response.ok) {
      const words = answer?.detail ?? answer?.title ?? `status ${response.status}`;
      throw new RequestError(`The server refused the request: ${words}`);
    }
    if (answer === null) throw new RequestError("The server's answer is not JSON.");
    return answer;
  }
}

/** Explains the text again when it was edited. `text()` returns the present text. */
export class Explainer {
  #controller = null;
  #soon = debounce(300, () => this.explain());

  constructor(state, server, text) {
    this.state = state;
    this.server = server;
    this.text = text;
  }

  edited() {
    this.#controller?.abort();
    this.#soon();
  }

  /** Explains the present text now. An answer for an older text is dropped. */
  async explain() {
    this.#controller?.abort();
    const controller = new AbortController();
    this.#controller = controller;
    const text = this.text();
    const begin = performance.now();
    this.state.say("Compiling", "busy");
    try {
      const answer = await this.server.post("/page/explain", { text }, controller.signal);
      if (controller.signal.aborted || text !== this.text()) return;
      this.state.take({ ...answer, text });
      this.state.say(this.#outcome(performance.now() - begin));
    } catch (error) {
      if (error.name === "AbortError" || controller.signal.aborted) return;
      if (!(error instanceof RequestError)) throw error;
      this.state.setStale(true);
      this.state.say(`${error.message} The stages are those of an earlier text.`, "error");
    }
  }

  #outcome(milliseconds) {
    const errors = this.state.diagnostics.filter((each) => each.severity === "error").length;
    if (errors > 0) return `${errors} ${errors === 1 ? "error" : "errors"}`;
    return `Answered in ${milliseconds.toFixed(0)} ms`;
  }
}
