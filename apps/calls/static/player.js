// The recording as sound: an <audio> without its own controls, because the timeline is one.

const SKIP = 10;

export class Player {
  #audio;
  #controls;
  #duration = 0;
  #moved;
  #frame = null;

  /** `moved(seconds)` is called whenever the position changes, and in every frame while it plays. */
  constructor(audio, controls, moved) {
    this.#audio = audio;
    this.#controls = controls;
    this.#moved = moved;
    controls.play.onclick = () => this.toggle();
    controls.back.onclick = () => this.seek(this.time - SKIP);
    controls.ahead.onclick = () => this.seek(this.time + SKIP);
    controls.speed.onchange = () => { audio.playbackRate = Number(controls.speed.value); };
    for (const type of ["play", "pause", "ended"]) audio.addEventListener(type, () => this.#showState());
    for (const type of ["seeking", "timeupdate", "loadedmetadata"]) audio.addEventListener(type, () => this.#report());
    audio.addEventListener("error", () => {
      controls.problem.textContent = "This browser cannot play the recording, which is OGG Opus. Download it instead.";
    });
  }

  load(url, duration) {
    if (this.#audio.src) return;
    this.#duration = duration;
    this.#audio.src = url;
    this.#report();
  }

  get time() {
    return this.#audio.currentTime;
  }

  seek(seconds) {
    this.#audio.currentTime = Math.min(Math.max(0, seconds), this.#duration);
    this.#report();
  }

  async play() {
    try {
      await this.#audio.play();
    } catch (error) {
      // A browser refuses to play before the first click, and a pause may come before the sound.
      if (!["NotAllowedError", "AbortError"].includes(error.name)) this.#controls.problem.textContent = error.message;
    }
  }

  toggle() {
    if (this.#audio.paused) this.play(); else this.#audio.pause();
  }

  #showState() {
    const isPlaying = !this.#audio.paused && !this.#audio.ended;
    this.#controls.play.ariaLabel = isPlaying ? "Pause" : "Play";
    this.#controls.play.classList.toggle("playing", isPlaying);
    cancelAnimationFrame(this.#frame);
    if (isPlaying) this.#tick();
  }

  #tick() {
    this.#report();
    this.#frame = requestAnimationFrame(() => this.#tick());
  }

  #report() {
    this.#moved(this.#audio.currentTime);
  }
}
