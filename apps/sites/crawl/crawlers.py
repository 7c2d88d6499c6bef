"""The crawlers of AI services, by the product token that robots.txt uses for them."""

# Our own, which is the first word of the User-Agent header of batchmill's fetcher.
AGENT = "batchmill"

AI_CRAWLERS = {
    "GPTBot": "OpenAI: training",
    "OAI-SearchBot": "OpenAI: search",
    "ChatGPT-User": "OpenAI: requests of users",
    "ClaudeBot": "Anthropic: training",
    "Claude-SearchBot": "Anthropic: search",
    "Claude-User": "Anthropic: requests of users",
    "anthropic-ai": "Anthropic: an old name",
    "PerplexityBot": "Perplexity: search",
    "Perplexity-User": "Perplexity: requests of users",
    "Google-Extended": "Google: training and grounding of Gemini",
    "Applebot-Extended": "Apple: training",
    "Amazonbot": "Amazon: answers and training",
    "meta-externalagent": "Meta: training",
    "meta-externalfetcher": "Meta: requests of users",
    "MistralAI-User": "Mistral: requests of users",
    "DuckAssistBot": "DuckDuckGo: answers",
    "CCBot": "Common Crawl: an archive that many models are trained on",
    "Bytespider": "ByteDance: training",
    "cohere-ai": "Cohere: requests of users",
    "YouBot": "You.com: search",
}
