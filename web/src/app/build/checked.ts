import { useEffect, useState } from 'react'
import { call } from '../../api/client'
import type { Problem } from './run'

const none: readonly Problem[] = []

/** useChecked asks the server what is wrong with a draft, at each pause in typing. */
export function useChecked(kind: 'component' | 'automation', name: string, draft: unknown): readonly Problem[] {
  const [found, setFound] = useState<{ text: string; problems: readonly Problem[] }>({ text: '', problems: none })
  const text = JSON.stringify(draft)
  useEffect(() => {
    const stop = new AbortController()
    const timer = setTimeout(() => {
      call('POST drafts/check', { body: { target: { kind, name }, draft: JSON.parse(text) as unknown }, signal: stop.signal }).then((result) => {
        // A refusal of the check itself (a limit, a lost right) says nothing about the draft.
        if (!stop.signal.aborted) setFound({ text, problems: result.ok ? result.data.problems : none })
      }, () => undefined)
    }, 600)
    return () => { clearTimeout(timer); stop.abort() }
  }, [kind, name, text])
  return found.text === text ? found.problems : none
}
