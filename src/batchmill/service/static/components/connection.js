// The state of a stream for people: <span class="connection"></span>

const TEXTS = {
  connecting: "Connecting …",
  live: "Live",
  reconnecting: "Reconnecting …",
  polling: "Updated every few seconds",
  paused: "Paused",
  ended: "",
  failed: "Not updated any more",
};

/** Shows the name of a state, as `follow` reports it. */
export function showConnection(place, name) {
  place.dataset.state = name;
  place.textContent = TEXTS[name];
}
