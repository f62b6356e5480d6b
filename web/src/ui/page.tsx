import { createContext, useContext, useEffect, type ReactNode } from 'react'

/** What a page tells the shell: the words for the tab and the last crumb. */
export interface PageFrame { setTitle: (title: string | undefined) => void }
export const FrameContext = createContext<PageFrame>({ setTitle: () => undefined })

export interface PageProps {
  title: string
  /** count stands small beside the title: "7", "6,031 records · private by default". */
  count?: ReactNode
  /** hint is the sentence under the title. */
  hint?: ReactNode
  acts?: ReactNode
  /** flush pages run edge to edge: a table, an editor. Their own parts pad themselves with class "pad". */
  flush?: boolean
  children?: ReactNode
}

/** Page is the head and the body of every page. Its h1 takes the focus after a navigation. */
export function Page({ title, count, hint, acts, flush, children }: PageProps) {
  const { setTitle } = useContext(FrameContext)
  useEffect(() => { setTitle(title); return () => { setTitle(undefined) } }, [title, setTitle])
  return (
    <div className={flush ? 'body flush' : 'body'}>
      <div className="head">
        <div className="grow">
          <h1 tabIndex={-1}><span>{title}</span>{count !== undefined && <span className="count">{count}</span>}</h1>
          {hint && <p>{hint}</p>}
        </div>
        {acts && <div className="acts">{acts}</div>}
      </div>
      {children}
    </div>
  )
}
