// Lists on a page that are shown again and again.

/** Shows the `element` of each item. Changes nothing if they are there in this order: moving an element takes its focus. */
export function fill(place, items) {
  const wanted = [...items].map(({ element }) => element);
  const isSame = wanted.length === place.children.length && wanted.every((each, at) => each === place.children[at]);
  if (!isSame) place.replaceChildren(...wanted);
}
