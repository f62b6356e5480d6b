/** safeNext keeps the way back inside the console: an address of another site is dropped. */
export function safeNext(next: string | undefined): string {
  if (!next?.startsWith('/') || next.startsWith('//') || next.includes('\\')) return '/'
  const inside = next.replace(/^\/admin(?=\/|$)/, '')
  return inside.startsWith('/') && !inside.startsWith('//') && !inside.startsWith('/sign-in') ? inside : '/'
}
