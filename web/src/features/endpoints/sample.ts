import { sampleOf } from '../../app/build/run'

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** signedSample writes a shell line that signs a body as the recipe for senders of one's own does. */
export function signedSample(url: string, inputs: readonly { name: string; type: string }[]): string {
  const body = JSON.stringify({ id: 'evt_1', ...sampleOf(inputs) })
  return [`BODY=${quote(body)}`, `SIG=$(printf '%s' "$BODY" | openssl dgst -sha256 -hmac "$SECRET" | awk '{print $NF}')`, `curl -s -X POST ${url} \\`, '  -H "Content-Type: application/json" \\', '  -H "X-Signature: $SIG" -d "$BODY"'].join('\n')
}
