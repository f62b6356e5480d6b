import { IconCheck, IconCopy } from '@tabler/icons-react'
import { useEffect, useState } from 'react'
import { Button } from './button'

/** useCopy copies text; copied is true for a moment, failed when the browser refused. */
export function useCopy(): { copied: boolean; failed: boolean; copy: (text: string) => Promise<void> } {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(() => { setState('idle') }, 2000)
    return () => { clearTimeout(timer) }
  }, [state])
  const copy = async (text: string) => {
    try {
      if (!('clipboard' in navigator)) throw new Error('no clipboard')
      await navigator.clipboard.writeText(text)
      setState('copied')
    } catch {
      // Without TLS there is no clipboard API: the old way, over a hidden field.
      const area = document.createElement('textarea')
      area.value = text
      area.style.position = 'fixed'
      area.style.opacity = '0'
      document.body.append(area)
      const before = document.activeElement
      area.select()
      const done = document.execCommand('copy')
      area.remove()
      if (before instanceof HTMLElement) before.focus()
      setState(done ? 'copied' : 'failed')
    }
  }
  return { copied: state === 'copied', failed: state === 'failed', copy }
}

/** CopyButton copies text; with children it has words, without it is an icon. */
export function CopyButton({ text, label = 'Copy', words, main, small }: { text: string; label?: string; words?: string; main?: boolean; small?: boolean }) {
  const { copied, failed, copy } = useCopy()
  const icon = copied ? <IconCheck size={16} stroke={1.7} aria-hidden /> : <IconCopy size={16} stroke={1.7} aria-hidden />
  const said = copied ? 'Copied' : failed ? 'Select and copy it by hand' : words
  if (!words) return <button type="button" className="btn quiet icon s" aria-label={copied ? 'Copied' : label} title={label} onClick={() => void copy(text)}>{icon}</button>
  return <Button kind={main ? 'main' : 'plain'} small={small} icon={icon} onClick={() => void copy(text)}><span aria-live="polite">{said}</span></Button>
}

/** IdChip shows an id in mono with a copy button; short cuts its middle on screen, never in the copy. */
export function IdChip({ id, short, label = 'id' }: { id: string; short?: boolean; label?: string }) {
  const { copied, copy } = useCopy()
  const shown = short && id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id
  return (
    <span className="id">
      <span title={id}>{shown}</span>
      <button type="button" className="idcopy" aria-label={copied ? 'Copied' : `Copy ${label}`} onClick={(event) => { event.stopPropagation(); void copy(id) }}>
        {copied ? <IconCheck size={13} stroke={1.7} aria-hidden /> : <IconCopy size={13} stroke={1.7} aria-hidden />}
      </button>
    </span>
  )
}
