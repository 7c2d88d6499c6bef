// Speakers: names, colours, and when each talks.

const COLOURS = 6;

/** The value of `data-voice`, from which the style sheet takes the colour. */
export const voiceOf = (speaker) => String((speaker - 1) % COLOURS + 1);

export const nameOf = (speaker) => `Speaker ${speaker}`;

/** The speakers of a call, as far as it is analysed: `{ speaker, name, spans }`. Without an analysis,
 * these are the times of the transcript; without a transcript, one speaker for each channel. */
export function speakersOf({ channels, transcript, analysis }) {
  if (analysis?.talk.speakers.length) return analysis.talk.speakers.map(({ speaker, name, spans }) => ({ speaker, name, spans }));
  const count = Math.max(channels, transcript?.speakers ?? 0, 1);
  return Array.from({ length: count }, (_, at) => ({
    speaker: at + 1, name: nameOf(at + 1), spans: transcript ? spansOf(transcript, at + 1) : null,
  }));
}

function spansOf({ speech, segments }, speaker) {
  return (speech.length ? speech : segments).filter((span) => span.speaker === speaker);
}
