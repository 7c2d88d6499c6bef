// Pictures inside the page.

const NAMESPACE = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, content = []) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...[content].flat());
  return made;
}
