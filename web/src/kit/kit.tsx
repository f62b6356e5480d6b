import './kit.css'
import { IconPlus, IconTrash } from '@tabler/icons-react'
import { lazy, Suspense, useState } from 'react'
import { ApiError } from '../api/error'
import { Arch } from '../ui/arch'
import { Button, IconButton } from '../ui/button'
import { Chart, Legend, Spark } from '../ui/chart'
import { CodeBlock, JsonView } from '../ui/code'
import { ConfirmDestroy } from '../ui/confirm'
import { ConflictView } from '../ui/conflict'
import { IdChip } from '../ui/copy'
import { Drawer, Tabs, useDrawer } from '../ui/drawer'
import { Person } from '../ui/face'
import { AreaField, CheckField, PasswordField, Segmented, SwitchField, TextField } from '../ui/field'
import { FilterBar } from '../ui/filters'
import { Gates, Track, Verdict } from '../ui/gates'
import { Chip, KeyValues, Meter, Section, Stats, Status } from '../ui/list'
import { Page } from '../ui/page'
import { PlanView } from '../ui/plan'
import { SaveBar } from '../ui/savebar'
import { SecretOnce } from '../ui/secret'
import { ManyField, SelectField, WordsField } from '../ui/select'
import { Empty, ErrorState, Forbidden, Note, Skeleton } from '../ui/states'
import { DataTable, Null, Pager, type Column } from '../ui/table'
import { Ago, Time } from '../ui/time'
import { toast, Toasts } from '../ui/toast'
import { UseIt } from '../ui/useit'

const CodeEditor = lazy(async () => ({ default: (await import('../ui/code-editor')).CodeEditor }))

interface Row { id: string; first: string; last: string; email: string; amount: number | null; at: string }
const names = ['Jonas Keller', 'Aisha Rahman', 'Tomás Vidal', 'Henrike Voss', 'Marek Zieliński', 'Linh Tran', 'Grace Adeyemi']
const rows: Row[] = Array.from({ length: 400 }, (_, i) => {
  const [first = '', last = ''] = (names[i % names.length] ?? '').split(' ')
  return { id: `01a1e2b8-90c1-7c0e-9d52-${String(i).padStart(12, '0')}`, first, last, email: `${first.toLowerCase()}${i}@example.com`, amount: i % 5 ? i * 1234.5 : null, at: new Date(Date.UTC(2026, 10, 20, 11, i % 60)).toISOString() }
})
const columns: Column<Row>[] = [
  { key: 'first', head: 'first_name', cell: (r) => `${r.first} ${r.id.slice(-3)}`, narrow: 'title' },
  { key: 'last', head: 'last_name', cell: (r) => r.last },
  { key: 'email', head: 'email', cell: (r) => r.email, narrow: 'sub' },
  { key: 'amount', head: 'amount', num: true, width: 120, cell: (r) => (r.amount === null ? <Null /> : r.amount.toLocaleString('en')), narrow: 'end' },
  { key: 'at', head: 'changed', num: true, width: 130, cell: (r) => <Time at={r.at} />, narrow: 'subend' },
]
const failed = new ApiError({ status: 503, code: 'OVERLOADED', message: 'too many runs at once', requestId: '01a1e3f2-c811-7000-8000-0000000077b0' })
const times = Array.from({ length: 84 }, (_, i) => 1_763_600_000 + i * 7200)
const answered = times.map((_, i) => Math.round(1500 + 1300 * Math.sin(i / 2)))
const errors = times.map((_, i) => (i > 68 && i < 74 ? 600 : i % 17 === 0 ? 90 : 0))

/** Kit shows every part of ui, in development only: its states, in both colours and at every width. */
export default function Kit() {
  return (
    <div className="app"><div /><div className="main"><main className="stage">
      <Page title="Kit" count="every part of ui" flush><Tabs label="Parts" name="part" inner="kitbody" tabs={[
        { key: 'small', label: 'Small parts', content: () => <Small /> },
        { key: 'table', label: 'Table', n: 400, content: () => <TablePart /> },
        { key: 'states', label: 'States', content: () => <States /> },
        { key: 'gates', label: 'Gates and plans', content: () => <GatesPart /> },
        { key: 'code', label: 'Code', content: () => <CodePart /> },
        { key: 'charts', label: 'Charts', content: () => <Charts /> },
      ]} /></Page>
    </main></div><Toasts /></div>
  )
}

function Small() {
  const [text, setText] = useState('ada@example.com')
  const [on, setOn] = useState(true)
  const [range, setRange] = useState<'1h' | '24h' | '7d'>('7d')
  const [choice, setChoice] = useState<string | null>('b')
  const [many, setMany] = useState<string[]>(['a'])
  const [words, setWords] = useState<string[]>(['https://shop.example'])
  const [asking, setAsking] = useState(false)
  const options = ['a', 'b', 'c'].map((v) => ({ value: v, label: `Option ${v}` }))
  return (
    <div className="kitgrid">
      <Section title="Arch"><div className="row wrap">{(['open', 'part', 'shut', 'none', 'hold'] as const).map((s) => <span className="row" key={s}><Arch state={s} />{s}</span>)}</div></Section>
      <Section title="Buttons"><div className="row wrap"><Button kind="main">Save</Button><Button>Plain</Button><Button kind="danger" icon={<IconTrash size={16} stroke={1.7} />} onClick={() => { setAsking(true) }}>Delete</Button><Button kind="bad">Delete key</Button><Button kind="quiet">Discard</Button><Button disabled>Off</Button><Button busy>Saving</Button><Button small icon={<IconPlus size={16} stroke={1.7} />}>Small</Button><IconButton label="Add"><IconPlus size={16} stroke={1.7} /></IconButton></div></Section>
      <Section title="Chips"><div className="row wrap"><Chip>pumps</Chip><Chip kind="line">TOKEN</Chip><Chip kind="acc">new</Chip><Chip kind="warn">unsaved</Chip><Chip kind="bad">failed</Chip><Status code={200} /><Status code={403} /><Status code={503} /><Meter value={96} max={1000} label="96 of 1,000" /><Meter value={300} max={300} label="300 of 300" /><Person name="Sam Okafor" /><Ago at={new Date(Date.now() - 3000)} /></div></Section>
      <Section title="Ids"><IdChip id={rows[0]?.id ?? ''} /> <IdChip id={rows[0]?.id ?? ''} short /></Section>
      <Section title="Fields">
        <TextField label="email" type="text, unique" value={text} onChange={setText} error="the value is taken" />
        <AreaField label="ip_allowlist" type="IPv4, one per line" mono value={'203.0.113.0/24\n2001:db8::/32'} onChange={() => undefined} help="Empty: any address." />
        <PasswordField label="Password" value="secret" onChange={() => undefined} />
        <SelectField label="Acts as" value={choice} options={options} onChange={setChoice} clearable />
        <ManyField label="Permission sets" value={many} options={options} onChange={setMany} />
        <WordsField label="Origins" value={words} onChange={setWords} />
        <CheckField label="Remember" checked={on} onChange={setOn} help="What it does." />
        <SwitchField label="Public API" checked={on} onChange={setOn} help="Off: every request is answered with 503." />
        <Segmented label="Range" value={range} options={[{ value: '1h', label: '1 h' }, { value: '24h', label: '24 h' }, { value: '7d', label: '7 days' }]} onChange={setRange} />
      </Section>
      <Section title="Values" right={<button type="button" className="linkish" onClick={() => { toast.show({ text: <>Saved <b className="med mono">support</b>, version 62</>, action: { label: 'What changed', run: () => undefined } }) }}>Show a toast</button>}>
        <KeyValues items={[{ name: 'Path', value: <code>/custom/quote</code> }, { name: 'Runs', value: 'quote' }, { name: 'Changed', value: <Time at="2026-11-20T11:05:00Z" /> }]} />
      </Section>
      {asking && <ConfirmDestroy title="Delete the key “Web shop”?" typeName="Web shop" action="Delete key" onConfirm={() => { setAsking(false) }} onClose={() => { setAsking(false) }}>It was used 2 s ago from 203.0.113.24: 41,022 requests in 7 days. They will get <code>401</code> at once. This can’t be undone.</ConfirmDestroy>}
    </div>
  )
}

function TablePart() {
  const drawer = useDrawer()
  const row = rows.find((r) => r.id === drawer.key)
  return (
    <div className="kittable">
      <FilterBar search="q" defs={[{ name: 'owner', label: 'owner', options: names.map((n) => ({ value: n, label: n })), always: true }, { name: 'city', label: 'city' }]} />
      <DataTable label="contact" columns={columns} rows={rows} rowKey={(r) => r.id} selected={drawer.key} onOpen={(r) => { drawer.open(r.id) }} footer={<Pager from={1} count={50} hasMore hasPrevious={false} onNext={() => undefined} onPrevious={() => undefined}>of 400 that match</Pager>} />
      {row && <Drawer title={`${row.first} ${row.last}`} label={`Contact ${row.first}`} onClose={drawer.close} onStep={() => undefined} sub={<><IdChip id={row.id} /><Person name="Sam Okafor" /></>} tabs={[{ key: 'fields', label: 'Fields', content: () => <KeyValues items={columns.map((c) => ({ name: c.head, value: c.cell(row) }))} /> }, { key: 'who', label: 'Who sees it', n: '4 of 44', content: () => <Why /> }, { key: 'use', label: 'Use it', content: () => <UseIt request={{ method: 'GET', url: 'http://demo.localhost:8080/public/v1/data/contact?limit=5' }} /> }]} />}
    </div>
  )
}

function Why() {
  return (
    <>
      <Verdict yes={false} why={<>The permissions allow contacts, but nothing shares this one with Eva. The API answers <code>404 NOT_FOUND</code>.</>}>No. Eva Brandt can’t read this contact.</Verdict>
      <Gates gates={[{ state: 'open', name: <><b className="med">User</b> is active</>, why: 'external, verified 3 Mar 2026' }, { state: 'open', name: <><b className="med">Permission set</b> portal allows contact: read</> }, { state: 'shut', name: <><b className="med">Sharing</b> opens this record to Eva in none of five ways</> }, { state: 'none', name: <><b className="med">Fields</b> 8 of 9 would be readable</> }]} />
    </>
  )
}

function States() {
  return (
    <div className="kitgrid">
      <Section title="Empty"><Empty title="No API keys yet" action={<Button kind="main" icon={<IconPlus size={16} stroke={1.7} />}>New key</Button>}>A key lets a program call the API as one of your users.</Empty></Section>
      <Section title="Loading"><Skeleton rows={4} /></Section>
      <Section title="Failed"><ErrorState what="The contacts could not be loaded." error={failed} onRetry={() => undefined} /></Section>
      <Section title="Forbidden"><Forbidden needs={['manage_users', 'manage_permissions']} /></Section>
      <Section title="Notes"><Note>Quiet.</Note><Note kind="warn">Look here.</Note><Note kind="bad">Refused.</Note></Section>
      <Section title="Conflict"><ConflictView who="Mia Lindqvist" what={<code>quote</code>} at="13:58" theirs={{ gold: 0.12, silver: 0.05 }} yours={{ gold: 0.1, silver: 0.05, platinum: 0.15 }} onMerge={() => undefined} onTakeTheirs={() => undefined} onSaveMine={() => undefined} /></Section>
      <SaveBar count={2} what={<><code>opportunity.amount</code> edit taken away</>} effect="Works within 1 s, for 6 users and 1 key" onSave={() => undefined} onDiscard={() => undefined} />
    </div>
  )
}

function GatesPart() {
  return (
    <>
      <Stats items={[{ label: 'Requests', value: '184,212', note: '12 % more than before' }, { label: 'Errors', value: '0.42', unit: '%', note: '772, 18 of them 5xx' }, { label: 'p95', value: 64, unit: 'ms', note: <span className="warn">19 ms slower</span> }]} />
      <Section title="Track"><Track label="How far the request came" gates={[{ state: 'open', name: 'Host', why: 'demo.localhost' }, { state: 'open', name: 'Public API', why: 'on' }, { state: 'open', name: 'Key', why: 'Web shop → Sam' }, { state: 'shut', name: 'Fields', why: 'margin: read only' }, { state: 'none', name: 'Sharing', why: 'not reached' }]} /></Section>
      <Section title="Why"><Why /></Section>
      <Section title="Plan"><PlanView groups={[{ title: 'Entities and fields', items: [{ key: '1', op: 'add', kind: 'field', name: 'opportunity.source', what: 'select, 4 options' }, { key: '2', op: 'change', kind: 'field', name: 'opportunity.expected_close', what: 'gets an index', before: '{name: expected_close, type: date}', after: '{name: expected_close, type: date, indexed: true}', notes: [{ text: 'Builds over 2,417 records, about 1 s.' }] }, { key: '3', op: 'remove', kind: 'field', name: 'account.website', what: 'removed from view', notes: [{ warn: true, text: '1,284 records, 973 with a value.' }] }] }]} /></Section>
      <Section title="Secret"><SecretPart /></Section>
    </>
  )
}

function SecretPart() {
  const [shown, setShown] = useState(true)
  if (!shown) return <Button onClick={() => { setShown(true) }}>Show it again</Button>
  return <SecretOnce title="Copy the token of “Web shop” now" why="It is shown this once. Gatehouse keeps only its hash; a lost token means a new key." secret="svc_api_0000000000000000000000000000000000000000000000000000" advice="Put it where your other secrets live." onDone={() => { setShown(false) }}><UseIt title="Try it" request={{ method: 'GET', url: 'http://demo.localhost:8080/public/v1/data/contact?limit=5', token: 'svc_api_00…' }} /></SecretOnce>
}

function CodePart() {
  const [text, setText] = useState('const cents = (amount) => Math.round(amount * 100) / 100\n\nexport default function handler(inputs, ctx) {\n  return { total: cents(acount.amount) }\n}\n')
  return (
    <>
      <Suspense fallback={null}><CodeEditor label="Source" language="javascript" value={text} onChange={setText} problems={[{ line: 4, column: 25, message: 'ReferenceError: acount is not defined', note: 'in handler' }]} /></Suspense>
      <div className="kitgrid top6"><JsonView title={<b>Request</b>} value={{ stage: 'proposal', amount: 18400, margin: 0.31, lines: null, on: true }} marked={['margin']} /><CodeBlock title={<b>Manifest</b>} language="yaml" text={'tenant: demo\nhosts: [demo.localhost]\npublic_api: {enabled: true}\n# words\n'} /></div>
      <UseIt request={{ method: 'POST', url: 'http://demo.localhost:8080/public/v1/data/contact', body: { first_name: 'Ada', last_name: 'Lovelace' } }} />
    </>
  )
}

function Charts() {
  return (
    <>
      <Section title="Requests" right={<Legend items={[{ label: 'answered', colour: 'chart-1' }, { label: 'errors', colour: 'chart-2' }]} />}><Chart title="Requests" text="Requests in bars of two hours over seven days" kind="bars" times={times} series={[{ label: 'answered', values: answered, colour: 'chart-1' }, { label: 'errors', values: errors, colour: 'chart-2' }]} topLabel={(v) => `${v.toLocaleString('en')} in 2 hours`} onZoom={() => undefined} /></Section>
      <Section title="Time to answer" right={<Legend lines items={[{ label: 'p50', colour: 'chart-4' }, { label: 'p95', colour: 'chart-3' }]} />}><Chart title="Time to answer" text="p50 and p95 over seven days" kind="lines" height={110} times={times} series={[{ label: 'p50', values: times.map((_, i) => 10 + (i % 3)), colour: 'chart-4' }, { label: 'p95', values: times.map((_, i) => 50 + 30 * Math.sin(i / 9)), colour: 'chart-3' }]} format={(v) => `${Math.round(v)} ms`} /></Section>
      <Spark values={answered.slice(0, 28)} bad={errors.slice(50, 78)} label="Requests over seven days" />
    </>
  )
}
