// The parts of a JSON Resume as a form shows them.
//
// A field has a name in the document, a label and a kind: text, email, tel, url, date, long (several
// lines of text), lines (a list of texts, one in each line) or photo. A section has entries, each with
// a title made of its fields.

const field = (kind) => (name, label, more = {}) => ({ kind, name, label, ...more });
const text = field("text");
const url = field("url");
const date = field("date");
const long = field("long");
const lines = field("lines");

const LINK = url("url", "Link");
const PERIOD = [date("startDate", "From"), date("endDate", "To", { hint: "Empty if it continues" })];
const SUMMARY = long("summary", "Summary");

const joined = (...names) => (entry) => names.map((name) => entry[name]).filter(Boolean).join(", ");
const period = ({ startDate, endDate }) => (startDate || endDate ? [startDate, endDate || "today"].filter(Boolean).join(" – ") : "");
const dated = (name) => (entry) => entry[name] ?? "";

export const BASICS = [
  text("name", "Name", { autocomplete: "name", isWide: true }),
  text("label", "Title", { placeholder: "Software engineer", isWide: true }),
  field("email")("email", "E-mail", { autocomplete: "email" }),
  field("tel")("phone", "Phone", { autocomplete: "tel" }),
  url("url", "Website", { isWide: true }),
  long("summary", "About you", { rows: 5 }),
  field("photo")("image", "Photo"),
];

export const LOCATION = [
  text("address", "Street", { isWide: true }),
  text("postalCode", "Postal code"),
  text("city", "City"),
  text("region", "Region"),
  text("countryCode", "Country", { placeholder: "US" }),
];

export const PROFILES = {
  name: "profiles", label: "Profiles", one: "profile", title: joined("network", "username"), facts: () => "",
  fields: [text("network", "Network", { placeholder: "GitHub" }), text("username", "Username"), url("url", "Link", { isWide: true })],
};

export const SECTIONS = [
  {
    name: "work", label: "Work", one: "position", title: joined("position", "name"), facts: period,
    fields: [text("position", "Position"), text("name", "Company"), ...PERIOD, text("location", "Place"), LINK, long("description", "About the company", { rows: 2 }), SUMMARY, lines("highlights", "Highlights")],
  },
  {
    name: "education", label: "Education", one: "education", isUncountable: true, title: joined("studyType", "area", "institution"), facts: period,
    fields: [text("institution", "Institution", { isWide: true }), text("studyType", "Degree", { placeholder: "Bachelor" }), text("area", "Subject"), ...PERIOD, text("score", "Grade"), LINK, lines("courses", "Courses")],
  },
  {
    name: "skills", label: "Skills", one: "skill", title: joined("name"), facts: ({ level }) => level ?? "",
    fields: [text("name", "Skill"), text("level", "Level"), lines("keywords", "Keywords")],
  },
  {
    name: "projects", label: "Projects", one: "project", title: joined("name"), facts: period,
    fields: [text("name", "Project", { isWide: true }), ...PERIOD, text("entity", "Organization"), text("type", "Type"), { ...LINK, isWide: true }, long("description", "Description"), lines("highlights", "Highlights"), lines("keywords", "Keywords"), lines("roles", "Roles")],
  },
  {
    name: "volunteer", label: "Volunteering", one: "activity", title: joined("position", "organization"), facts: period,
    fields: [text("position", "Position"), text("organization", "Organization"), ...PERIOD, { ...LINK, isWide: true }, SUMMARY, lines("highlights", "Highlights")],
  },
  {
    name: "awards", label: "Awards", one: "award", title: joined("title"), facts: dated("date"),
    fields: [text("title", "Award", { isWide: true }), text("awarder", "Given by"), date("date", "Date"), SUMMARY],
  },
  {
    name: "certificates", label: "Certificates", one: "certificate", title: joined("name"), facts: dated("date"),
    fields: [text("name", "Certificate", { isWide: true }), text("issuer", "Issued by"), date("date", "Date"), { ...LINK, isWide: true }],
  },
  {
    name: "publications", label: "Publications", one: "publication", title: joined("name"), facts: dated("releaseDate"),
    fields: [text("name", "Title", { isWide: true }), text("publisher", "Publisher"), date("releaseDate", "Date"), { ...LINK, isWide: true }, SUMMARY],
  },
  {
    name: "languages", label: "Languages", one: "language", title: joined("language"), facts: ({ fluency }) => fluency ?? "",
    fields: [text("language", "Language"), text("fluency", "Fluency", { placeholder: "Native" })],
  },
  {
    name: "interests", label: "Interests", one: "interest", title: joined("name"), facts: () => "",
    fields: [text("name", "Interest", { isWide: true }), lines("keywords", "Keywords")],
  },
  {
    name: "references", label: "References", one: "reference", title: joined("name"), facts: () => "",
    fields: [text("name", "Name", { isWide: true }), long("reference", "What they say")],
  },
];

/** A document with all parts that the form needs. */
export function complete(document) {
  const { basics, ...rest } = document;
  const { location, profiles, ...facts } = basics ?? {};
  const sections = SECTIONS.map(({ name }) => [name, rest[name] ?? []]);
  return { ...rest, basics: { ...facts, location: location ?? {}, profiles: profiles ?? [] }, ...Object.fromEntries(sections) };
}

/** The document without the empty parts that `complete` has added. Everything else stays: entries, so that the paths
 * of problems stay too, and fields that the form does not know. */
export function withoutEmpty({ basics, ...rest }) {
  const kept = without(basics, ["location", "profiles"]);
  return without({ ...rest, basics: kept }, ["basics", ...SECTIONS.map(({ name }) => name)]);
}

function without(object, emptied) {
  return Object.fromEntries(Object.entries(object).filter(([name, value]) => !emptied.includes(name) || Object.keys(value).length));
}
