// Pictures of first pages. The server makes them one after the other, so a page asks for few at once:
// its other requests would wait behind them.

const AT_ONCE = 2;
const AGAIN_MS = 4_000;
const TRIES = 3;

const waiting = [];
let loading = 0;

const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    seen.unobserve(target);
    waiting.push(target);
    next();
  }
}, { rootMargin: "200px" });

/** Shows a picture as soon as its place is near the screen. */
export function loadWhenSeen(image, url) {
  image.dataset.url = url;
  image.dataset.state = "waiting";
  seen.observe(image);
}

function next() {
  while (loading < AT_ONCE && waiting.length) {
    const image = waiting.shift();
    // Not a picture of a card that is gone.
    if (image.isConnected) load(image);
  }
}

async function load(image, tries = 1) {
  const { url } = image.dataset;
  loading += 1;
  image.dataset.state = "loading";
  const isLoaded = await new Promise((resolve) => {
    image.onload = () => resolve(true);
    image.onerror = () => resolve(false);
    image.src = tries > 1 ? `${url}&try=${tries}` : url;
  });
  loading -= 1;
  // Another picture may be wanted here since.
  if (image.dataset.url === url) {
    image.dataset.state = isLoaded ? "shown" : "failed";
    if (!isLoaded && tries < TRIES && image.isConnected) setTimeout(() => load(image, tries + 1), tries * AGAIN_MS);
  }
  next();
}
