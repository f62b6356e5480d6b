/** Who can call an endpoint, in words. */
export const modes: Readonly<Record<string, string>> = { api_key: 'an API key', token: 'who has its token', signed: 'a provider, by signature' }
