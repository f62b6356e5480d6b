/** A JSON text that somebody types: its value, or the words and the line of what is wrong with it. */
export type Parsed = { ok: true; value: unknown } | { ok: false; message: string; line: number }

/** parseJSON reads a text; the message names the line. */
export function parseJSON(text: string): Parsed {
  try {
    return { ok: true, value: JSON.parse(text) as unknown }
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    const at = /position (\d+)/.exec(message)
    const before = at ? text.slice(0, Number(at[1])) : text
    return { ok: false, message: message.replace(/ in JSON at position \d+.*$/s, '').replace(/^JSON\.parse: /, ''), line: before.split('\n').length }
  }
}

/** printJSON writes a value as people read it. */
export function printJSON(value: unknown): string { return JSON.stringify(value, null, 2) }
