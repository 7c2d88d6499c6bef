// Places in a document: `$.work[2].startDate` is ["work", 2, "startDate"].

export function parsed(path) {
  return [...path.matchAll(/\.([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
}
