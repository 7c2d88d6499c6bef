// Requests to the page's own server.

const CSRF_COOKIE = "batchmill_csrf";

/** An answer other than 2xx, or none at all (`status` 0). */
export class CallError extends Error {
  constructor(status, body = {}, retryAfter = null) {
    super();
    Object.assign(this, { status, code: body.code ?? body.error?.code ?? null, body, retryAfter });
    const unknown = this.isFinal ? `The server refused this with status ${status}.` : "The server does not respond. Try again.";
    this.message = sentence(body) ?? unknown;
  }

  /** Whether the same request will fail again, whenever it is sent. */
  get isFinal() {
    return this.status >= 400 && this.status < 500 && ![408, 425, 429].includes(this.status);
  }

  static async of(answer) {
    const seconds = Number(answer.headers.get("Retry-After") ?? NaN);
    return new CallError(answer.status, await answer.json().catch(() => ({})), Number.isFinite(seconds) ? seconds : null);
  }
}

/** The answer's JSON. Throws a CallError for an answer other than 2xx. */
export async function call(url, options = {}) {
  const headers = new Headers(options.headers);
  const token = csrfToken();
  if (token && !["GET", "HEAD"].includes(options.method ?? "GET")) headers.set("X-CSRF-Token", token);
  const answer = await fetch(url, { ...options, headers }).catch((error) => {
    throw error.name === "AbortError" ? error : new CallError(0);
  });
  if (!answer.ok) throw await CallError.of(answer);
  return content(answer);
}

export function post(url, body = {}, options = {}) {
  const headers = { "Content-Type": "application/json", ...options.headers };
  return call(url, { method: "POST", body: JSON.stringify(body), ...options, headers });
}

/** For the header `Idempotency-Key`: a form that is sent twice with one key creates one batch.
 * `crypto.randomUUID` exists only on pages that were loaded over TLS. */
export function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** For the header `X-CSRF-Token` of a request that is not sent by `call`, or undefined without a session.
 * Only pages of this site can read the cookie, so its value proves where the request is from. Over https
 * its name has a prefix. A browser may still have an older cookie without the prefix. */
export function csrfToken() {
  return cookie(`__Host-${CSRF_COOKIE}`) ?? cookie(CSRF_COOKIE);
}

function cookie(name) {
  return document.cookie.split("; ").find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** The JSON of a 2xx answer; `{}` if it has no body. A body that is cut off is no answer. */
async function content(answer) {
  try {
    const text = await answer.text();
    return text ? JSON.parse(text) : {};
  } catch (error) {
    throw error.name === "AbortError" ? error : new CallError(0);
  }
}

/** The sentence for people, from problem details or from an application's own format. */
function sentence(body) {
  return [body.detail, body.message, body.error?.message, body.error].find((text) => typeof text === "string");
}
