// Who transcribes recordings, in words.

const PROVIDERS = {
  local: ["This server (English)", "transcribed on this server"],
  speechkit: ["Yandex SpeechKit", "transcribed by Yandex SpeechKit"],
  openai: ["OpenAI-compatible service", "transcribed by an OpenAI-compatible service"],
  manual: ["I have a transcript", "with your transcript"],
};

const LANGUAGES = ["ar", "cs", "de", "en", "es", "fi", "fr", "he", "it", "ja", "kk", "ko", "nl", "pl", "pt", "ru", "sv", "tr", "uk", "zh"];

/** Languages to choose from. The server knows which ones the provider really supports, and says so. */
export function languagesOf(provider, usual) {
  return provider === "local" ? ["en"] : [...new Set([usual, ...LANGUAGES])];
}

/** As a choice. */
export const choiceOf = (provider) => PROVIDERS[provider]?.[0] ?? provider;

/** As a fact about a call. */
export const creditOf = (provider) => PROVIDERS[provider]?.[1] ?? `transcribed by ${provider}`;
