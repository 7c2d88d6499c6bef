// The API of this application: answers are {success, data}.

import { call, post as send } from "/components/http.js";

/** The address of a path of the API, for links and images. */
export const address = (path) => `/api/v1${path}`;

const data = async (answer) => (await answer).data;

export const get = (path, options) => data(call(address(path), options));
export const post = (path, body, options) => data(send(address(path), body, options));
export const put = (path, body) => data(send(address(path), body, { method: "PUT" }));
export const remove = (path) => data(call(address(path), { method: "DELETE" }));

/** Facts about an error besides its code and its sentence: `path`, `field`, `version`, `used`, `limit`. */
export const factsOf = (error) => error.body?.error ?? {};
