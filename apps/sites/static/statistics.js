// How much waits, runs and has ended, for each phase and in total.

import { element } from "/components/elements.js";
import { duration } from "/components/format.js";
import { Table } from "/components/table.js";
import { nameOf } from "./phases.js";

const count = (name, label) => ({ label, short: label, class: "number", value: (each) => each[name].toLocaleString() });
const seconds = (value) => (value == null ? "–" : duration(value));
const times = (name, label) => ({ label, short: label, class: "number", value: ({ [name]: { p50, p95 } }) => element("span", p50 == null ? "–" : [seconds(p50), element("span", " / ", { class: "faint" }), seconds(p95)]) });

const COLUMNS = [
  { label: "Phase", class: "wide strong", value: ({ phase }) => (phase ? nameOf(phase) : "Total") },
  count("waiting", "Waiting"),
  count("running", "Running"),
  { label: "Oldest", short: "Oldest", class: "number", value: ({ oldestSeconds }) => seconds(oldestSeconds) },
  count("completed", "Completed"),
  count("failed", "Failed"),
  { label: "Per minute", short: "Per minute", class: "number", value: ({ perMinute }) => perMinute.toLocaleString(undefined, { maximumFractionDigits: 2 }) },
  times("waitSeconds", "Wait p50 / p95"),
  times("runSeconds", "Run p50 / p95"),
];

export class Statistics {
  #table;

  constructor(table) {
    this.#table = new Table(table, COLUMNS);
  }

  show({ phases, total }) {
    this.#table.show([...phases, { phase: null, ...total }]);
  }
}
