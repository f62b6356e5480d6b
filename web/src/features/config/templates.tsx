import { useQuery } from '@tanstack/react-query'
import { asError } from '../../api/error'
import { askPage } from '../../api/client'
import { useObjects } from '../../app/objects'
import { paths } from '../../app/paths'
import { Link } from '../../ui/link'
import { Chip, Section } from '../../ui/list'
import { Page } from '../../ui/page'
import { Empty } from '../../ui/states'
import { DataTable } from '../../ui/table'
import { Ago, countWords } from '../../ui/time'
import { useGo } from '../../ui/url'
import { templates, type TemplateValue } from './template-names'

/** Templates lists the mails of External Identity and the mails that wait. */
export default function Templates() {
  const own = useObjects<TemplateValue>('email_template')
  const mails = useQuery({ queryKey: ['mails'], queryFn: ({ signal }) => askPage('GET mails', { signal }), refetchInterval: 10_000 })
  const go = useGo()
  const waiting = mails.data?.meta.waiting
  return (
    <Page title="E-mail templates" flush hint="What external users are sent. A template of your own takes the place of the built-in mail.">
      <DataTable label="E-mail templates" rows={own.data ? templates : undefined} rowKey={(row) => row.name} onOpen={(row) => { go(paths.templates(row.name)) }} loading={own.isFetching} error={own.error ? asError(own.error) : undefined} onRetry={() => { void own.refetch() }}
        columns={[
          { key: 'name', head: 'Mail', narrow: 'title', cell: (row) => <Link to={paths.templates(row.name)}><b>{row.title}</b></Link> },
          { key: 'when', head: 'Sent', narrow: 'sub', cell: (row) => row.when },
          { key: 'own', head: 'Text', width: 160, narrow: 'end', cell: (row) => own.data?.some((o) => o.name === row.name) ? <Chip kind="acc">your own</Chip> : <span className="second">built in</span> },
        ]} />
      <div className="pad mailswait">
        <Section title="Mails that wait" right={waiting && countWords(waiting.count, waiting.more)}>
          {mails.data?.rows.length === 0 && <p className="second">None. A mail waits until the relay takes it, for 48 hours at most.</p>}
          <ul className="cfg-list">{mails.data?.rows.map((m) => <li key={m.id}><b>{m.subject || 'A mail'}</b> to <span className="mono">{m.to || '–'}</span>, <Ago at={m.createdAt} />{m.tries > 0 && <>, tried {m.tries === 1 ? 'once' : `${m.tries} times`}</>}{m.lastError && <span className="bad">: {m.lastError}</span>}</li>)}</ul>
          {mails.error && <Empty title="Waiting mails could not be loaded" arch={false}>{asError(mails.error).message}</Empty>}
        </Section>
      </div>
    </Page>
  )
}
