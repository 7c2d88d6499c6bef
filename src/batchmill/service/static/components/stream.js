// Follows a batch or a feed live: Server-Sent Events with exact replay, or else polling.
//
// The stream is read with fetch and not with an EventSource, which shows neither keep-alives nor the
// ids of events without data.

const FIRST_BYTE_MS = 5_000;
const SILENCE_MS = 45_000;
const READ_MS = 30_000;
const POLL_MS = 3_000;
const HIDDEN_MS = 10_000;
const LONGEST_DELAY_MS = 15_000;
const REFUSALS = 2;
// A polling page tries the stream again after this many polls.
const POLLS = 20;
const LAST_EVENTS = ["batch_completed", "batch_cancelled"];
// Events in place of the log: the page has to read the state again.
const RESTARTS = ["state_sync", "feed_restarted"];

/**
 * Reads the state, and then the events after it, until the last one. Options:
 *   read(signal)   reads the state from the server; throws an error with `isFinal` false to try again
 *   show(state)    shows the state
 *   last(state)    the id of the last event that the state includes
 *   isOver(state)  whether no more events follow; omit it for a stream that does not end
 *   on             functions by the name of the event, each with the event's data
 *   changed()      is called after one or more events
 *   ends           the names of the events after which there are no more: without `isOver` none, because a
 *                  feed continues after the end of a batch
 *   state(name, error)  connecting, live, reconnecting, polling, paused, ended or failed
 */
export function follow(url, options) {
  return new Follower(url, options);
}

class Follower {
  #url;
  #options;
  #run = null;
  #last = null;
  #isOver = false;
  #refusals = 0;
  #delay = 2_000;
  #state = null;

  constructor(url, { isOver = null, on = {}, changed = () => {}, ends = isOver ? LAST_EVENTS : [], state = () => {}, ...required }) {
    this.#url = url;
    this.#options = { isOver: isOver ?? (() => false), on, changed, ends, state, ...required };
    this.restart();
  }

  /** Reads the state again and follows from there, for example after a retry of the batch. */
  restart() {
    this.close();
    this.#run = new AbortController();
    this.#follow(this.#run.signal);
  }

  close() {
    this.#run?.abort();
  }

  async #follow(signal) {
    this.#state = null;
    this.#report("connecting");
    this.#refusals = 0;
    try {
      this.#take(await this.#read(signal));
      while (!this.#isOver) {
        await this.#untilVisible(signal);
        if (this.#refusals < REFUSALS) await this.#stream(signal); else await this.#poll(signal);
      }
      this.#report("ended");
    } catch (error) {
      if (!signal.aborted) this.#report("failed", error);
    }
  }

  /** Follows one connection to its end. */
  async #stream(signal) {
    let isOpen = false;
    try {
      for await (const messages of connection(this.#url, this.#last, signal)) {
        signal.throwIfAborted();
        isOpen = true;
        this.#refusals = 0;
        this.#report("live");
        if (await this.#heed(messages, signal)) break;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Lost)) throw error;
    }
    if (this.#isOver || document.hidden) return;
    if (this.#refusals < REFUSALS - 1) this.#report("reconnecting");
    if (!isOpen) await this.#refused(signal);
    if (!this.#isOver) await sleep(jittered(this.#delay), signal);
  }

  /** Reads the state, to know whether the batch is over or gone, or only the stream fails. Shows it
   * only if the batch is over: otherwise the stream continues with the event after the last one. */
  async #refused(signal) {
    let isDown = false;
    const state = await this.#read(signal, () => { isDown = true; });
    if (!isDown) this.#refusals += 1;
    if (this.#options.isOver(state)) this.#take(state);
  }

  async #poll(signal) {
    this.#report("polling");
    for (let polls = 0; polls < POLLS && !this.#isOver; polls++) {
      const state = await this.#read(signal);
      this.#report("polling");
      if (String(this.#options.last(state)) !== this.#last || this.#options.isOver(state)) this.#take(state);
      if (this.#isOver) return;
      await sleep(jittered(POLL_MS), signal);
      await this.#untilVisible(signal);
    }
    this.#refusals = REFUSALS - 1;
  }

  async #read(signal, failed = () => {}) {
    for (let delay = 1_000; ; delay = Math.min(2 * delay, LONGEST_DELAY_MS)) {
      try {
        const state = await this.#options.read(AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]));
        signal.throwIfAborted();
        return state;
      } catch (error) {
        signal.throwIfAborted();
        if (error.isFinal !== false) throw error;
        failed();
        this.#report("reconnecting", error);
        await sleep(Math.max(jittered(delay), 1000 * (error.retryAfter ?? 0)), signal);
      }
    }
  }

  #take(state) {
    this.#last = String(this.#options.last(state));
    this.#isOver = this.#options.isOver(state);
    this.#options.show(state);
  }

  /** Handles messages. Returns true if this connection is no longer needed. */
  async #heed(messages, signal) {
    const { on, ends, changed } = this.#options;
    let isChanged = false;
    for (const { id, type, data, retry } of messages) {
      if (retry) this.#delay = retry;
      if (id !== null) this.#last = id;
      if (RESTARTS.includes(type)) {
        this.#take(await this.#read(signal));
        return true;
      }
      if (data === null) continue;
      isChanged = true;
      guarded(() => on[type]?.(JSON.parse(data)));
      if (ends.includes(type)) this.#isOver = true;
    }
    if (isChanged) guarded(changed);
    return this.#isOver;
  }

  /** A hidden page holds no connection: a browser has few for each server, and all tabs share them. */
  async #untilVisible(signal) {
    if (!document.hidden) return;
    this.#report("paused");
    while (document.hidden) await happened(document, "visibilitychange", signal);
  }

  #report(name, error = null) {
    if (name === this.#state) return;
    this.#state = name;
    this.#options.state(name, error);
  }
}

/** The connection was refused, broke, or nothing arrives. */
class Lost extends Error {}

/** Yields the messages of each chunk; a chunk may have none. The server writes its first bytes at
 * once: if they do not arrive soon, a proxy holds them back. */
async function* connection(url, last, signal) {
  const own = new AbortController();
  const deadline = new Deadline(() => own.abort());
  const onChange = () => deadline.set(document.hidden ? HIDDEN_MS : SILENCE_MS);
  document.addEventListener("visibilitychange", onChange);
  deadline.set(FIRST_BYTE_MS);
  try {
    const headers = { Accept: "text/event-stream", ...(last !== null && { "Last-Event-ID": last }) };
    const answer = await fetch(url, { headers, cache: "no-store", signal: AbortSignal.any([signal, own.signal]) });
    const isStream = answer.status === 200 && answer.headers.get("Content-Type")?.startsWith("text/event-stream");
    if (!isStream) throw new Lost();
    const parser = new Parser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let chunk; !(chunk = await reader.read()).done;) {
      if (!document.hidden) deadline.set(SILENCE_MS);
      yield parser.read(chunk.value);
    }
  } catch (error) {
    throw error instanceof Lost ? error : new Lost();
  } finally {
    deadline.clear();
    document.removeEventListener("visibilitychange", onChange);
    own.abort();
  }
}

class Deadline {
  #timer = null;
  #expired;

  constructor(expired) {
    this.#expired = expired;
  }

  set(milliseconds) {
    this.clear();
    this.#timer = setTimeout(this.#expired, milliseconds);
  }

  clear() {
    clearTimeout(this.#timer);
  }
}

/** https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream */
class Parser {
  #rest = "";

  read(text) {
    const blocks = (this.#rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#rest = blocks.pop();
    return blocks.map(message);
  }
}

function message(block) {
  const found = { id: null, type: "message", data: null, retry: null };
  for (const line of block.split("\n")) {
    const [field] = line.split(":", 1);
    const value = line.slice(field.length + 1).replace(/^ /, "");
    if (field === "id") found.id = value;
    else if (field === "event") found.type = value;
    else if (field === "data") found.data = found.data === null ? value : `${found.data}\n${value}`;
    else if (field === "retry") found.retry = Number(value);
  }
  return found;
}

/** A mistake in a page's function must not end its stream. */
function guarded(work) {
  try {
    work();
  } catch (error) {
    reportError(error);
  }
}

// Random, so that pages do not all reconnect at the same moment after a restart of the server.
function jittered(milliseconds) {
  return milliseconds * (0.75 + Math.random() / 2);
}

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal.removeEventListener("abort", stop); resolve(); }, milliseconds);
    signal.addEventListener("abort", stop);
  });
}

function happened(target, type, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    target.addEventListener(type, () => { signal.removeEventListener("abort", stop); resolve(); }, { once: true, signal });
    signal.addEventListener("abort", stop);
  });
}
