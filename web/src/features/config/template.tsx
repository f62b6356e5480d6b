import './config.css'
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useDeferredValue, useEffect, useRef, useState } from 'react'
import { ask } from '../../api/client'
import { asError, type ApiError } from '../../api/error'
import { absent, objectsKey, problemAt, useObject } from '../../app/objects'
import { paths } from '../../app/paths'
import { Button } from '../../ui/button'
import { ActionError, ConfirmDestroy } from '../../ui/confirm'
import { ConflictView } from '../../ui/conflict'
import { useDraft } from '../../ui/drafts'
import { AreaField, Segmented, TextField } from '../../ui/field'
import { Link } from '../../ui/link'
import { Page } from '../../ui/page'
import { SaveBar } from '../../ui/savebar'
import { Empty, ErrorState, Note, Skeleton } from '../../ui/states'
import { toast } from '../../ui/toast'
import { LeaveGuard } from '../../ui/unsaved'
import { useParam } from '../../ui/url'
import { useReview } from './review'
import { templates, variablesOf, type TemplateValue } from './template-names'

/** TemplatePage edits one mail beside what it looks like. */
export default function TemplatePage() {
  const name = useParam('name')
  const known = templates.find((t) => t.name === name)
  const own = useObject<TemplateValue>('email_template', name, known !== undefined)
  const builtIn = useQuery({ queryKey: ['template', name, 'built in'], enabled: known !== undefined, staleTime: Infinity, queryFn: async ({ signal }) => (await ask('POST templates/preview', { body: { name, subject: '', text: '', html: '' }, signal })).draft })
  if (!known) return <Page title={name}><Empty title={`There is no mail ${name}`} action={<Link className="btn" to={paths.templates()}>All templates</Link>}>External Identity sends no mail of that name.</Empty></Page>
  const failed = own.error ?? builtIn.error
  if (failed) return <Page title={known.title}><ErrorState what="The template could not be loaded." error={asError(failed)} onRetry={() => { void own.refetch(); void builtIn.refetch() }} /></Page>
  if (own.data === undefined || !builtIn.data) return <Page title={known.title}><Skeleton label="Loading the template" /></Page>
  const { subject, text, html } = builtIn.data
  return <Editor key={name} name={name} title={known.title} when={known.when} link={known.link} stored={own.data?.value ?? { subject, text, html }} version={own.data?.version ?? absent} own={own.data !== null} />
}

function Editor({ name, title, when, link, stored, version, own }: { name: string; title: string; when: string; link: string | undefined; stored: TemplateValue; version: string; own: boolean }) {
  const client = useQueryClient()
  const draft = useDraft<TemplateValue>(`template/${name}`, stored, version)
  const review = useReview('Template saved')
  const [shown, setShown] = useState<'html' | 'text'>('html')
  const [dropping, setDropping] = useState(false)
  const { value } = draft
  const later = useDeferredValue(value)
  const preview = useQuery({ queryKey: ['template', name, later], placeholderData: keepPreviousData, queryFn: ({ signal }) => ask('POST templates/preview', { body: { name, ...later }, signal }) })
  const test = useMutation<{ to: string }, ApiError>({ mutationFn: async () => { try { return await ask('POST templates/test', { body: { name, ...value } }) } catch (thrown) { throw asError(thrown) } }, onSuccess: (sent) => { toast.show({ text: `A test mail goes to ${sent.to}` }) } })
  const set = (patch: Partial<TemplateValue>) => { review.clear(); test.reset(); draft.set({ ...value, ...patch }) }
  const flaw = (member: string) => problemAt(review.problems, member) ?? test.error?.fields[member] ?? preview.data?.invalid.find((f) => f.member === member)?.reason
  const loaded = async () => { draft.discard(); await client.invalidateQueries({ queryKey: objectsKey('email_template') }) }
  const save = (against: string) => { review.start([{ kind: 'email_template', name, value, against }], () => { void loaded() }) }
  const conflict = review.error?.conflict
  const theirVersion = review.error?.details['version']
  const dirty = draft.dirty && JSON.stringify(value) !== JSON.stringify(stored)
  return (
    <Page title={title} count={own ? 'your own' : 'built in'} hint={`Sent ${when}.`}
      acts={<>
        {own && <Button kind="danger" onClick={() => { setDropping(true) }}>Back to the built-in mail</Button>}
        <Button busy={test.isPending} onClick={() => { test.mutate() }}>Send me a test mail</Button>
      </>}>
      {conflict && typeof theirVersion === 'string' && <ConflictView what="this template" theirs={conflict.stored} yours={value} busy={review.busy} onTakeTheirs={() => { review.clear(); void loaded() }} onSaveMine={() => { draft.rebase(theirVersion); save(theirVersion) }} />}
      {draft.restored && dirty && <Note>Your edit from before is here, unsaved.</Note>}
      {test.error && Object.keys(test.error.fields).length === 0 && <ActionError error={test.error} />}
      {!conflict && review.problems.length === 0 && <ActionError error={review.error} />}
      <div className="cfg-cols cfg-half">
        <div>
          <TextField label="Subject" value={value.subject} onChange={(subject) => { set({ subject }) }} error={flaw('subject')} />
          <AreaField label="HTML" mono rows={14} spellCheck={false} value={value.html} onChange={(html) => { set({ html }) }} error={flaw('html')} />
          <AreaField label="Text" mono rows={8} value={value.text} onChange={(text) => { set({ text }) }} error={flaw('text')} />
          <p className="help">Replaced when the mail is sent: {variablesOf(link).map((v) => <code key={v}>{`{{${v}}} `}</code>)}</p>
        </div>
        <div className="pane">
          <header><b className="trunc">{preview.data?.subject ?? ''}</b><span className="r"><Segmented label="Form" small value={shown} options={[{ value: 'html', label: 'HTML' }, { value: 'text', label: 'Text' }]} onChange={setShown} /></span></header>
          {preview.error && <ErrorState what="The preview could not be made." error={asError(preview.error)} />}
          {preview.data && (shown === 'html'
            // The mail is made by an admin: it is shown in a frame without scripts, forms and an origin of ours.
            ? <MailFrame html={preview.data.html} />
            : <pre className="src wrap cfg-text">{preview.data.text}</pre>)}
          <p className="help pad">As it would be sent from {preview.data?.from ?? '–'} to {preview.data?.to ?? '–'}; the link leads nowhere.</p>
        </div>
      </div>
      <SaveBar count={dirty ? 1 : 0} what={own ? 'Your text of this mail.' : 'Your own text takes the place of the built-in mail.'} busy={review.busy} onSave={() => { save(draft.against) }} onDiscard={() => { review.clear(); draft.discard() }} action="Save template" />
      {dropping && <ConfirmDestroy title="Go back to the built-in mail" action="Drop my text" busy={review.busy} onClose={() => { setDropping(false) }} onConfirm={() => { setDropping(false); review.start([{ kind: 'email_template', name, value: null, against: version }], () => { void loaded() }) }}><p>Your subject, HTML and text of this mail go. The change history keeps them.</p></ConfirmDestroy>}
      {review.dialog}
      <LeaveGuard dirty={dirty} what="Your text of this mail isn’t saved." onDiscard={draft.discard} />
    </Page>
  )
}

/** MailFrame shows a mail. The focus inside a frame is no :focus of the page: the page only loses its own, to the frame. */
function MailFrame({ html }: { html: string }) {
  const frame = useRef<HTMLIFrameElement>(null)
  const [inside, setInside] = useState(false)
  useEffect(() => {
    const look = () => { setInside(document.activeElement === frame.current) }
    window.addEventListener('blur', look)
    window.addEventListener('focus', look)
    return () => { window.removeEventListener('blur', look); window.removeEventListener('focus', look) }
  }, [])
  return <iframe ref={frame} className={inside ? 'cfg-mail inside' : 'cfg-mail'} title="Preview of the mail" sandbox="" srcDoc={html} />
}
