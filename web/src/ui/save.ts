/** save hands a file to the browser's downloads. */
export function save(name: string, parts: readonly string[], type: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([...parts], { type }))
  link.download = name
  link.click()
  // A browser reads the address after the click: it is given back when that is over.
  setTimeout(() => { URL.revokeObjectURL(link.href) }, 60_000)
}
