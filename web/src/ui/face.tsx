/** initialsOf takes two letters of a name or an address. */
export function initialsOf(name: string): string {
  const words = name.replace(/@.*/, '').split(/[\s._-]+/).filter(Boolean)
  const letters = words.length > 1 ? [words[0], words.at(-1)].map((w) => [...(w ?? '')][0] ?? '') : [...(words[0] ?? '?')].slice(0, 2)
  return letters.join('').toUpperCase()
}

/** Face stands for a user beside the name. It has no colour of its own: people are not colours. */
export function Face({ name, small }: { name: string; small?: boolean }) {
  return <span className={small ? 'face s' : 'face'} aria-hidden="true">{initialsOf(name)}</span>
}

/** Person is the face and the name. */
export function Person({ name }: { name: string }) {
  return <span className="row person"><Face name={name} small /><span className="trunc">{name}</span></span>
}
