import type { ReactNode } from 'react'
import { CodeTabs } from './code'

/** A request to show as curl, JavaScript and Go that work as pasted. */
export interface SampleRequest {
  method: string
  url: string
  /** token goes into Authorization; null leaves the header out. The variable $GATEHOUSE_TOKEN stands for one that is not known. */
  token?: string | null
  headers?: Readonly<Record<string, string>>
  /** body: a string goes as it is, anything else as JSON. */
  body?: unknown
}

const variable = 'GATEHOUSE_TOKEN'

/** sh quotes text for a POSIX shell. */
const sh = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
const goString = (text: string) => JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
const indent = (text: string, by: string) => text.replaceAll('\n', `\n${by}`)

function parts({ method, token, headers, body }: SampleRequest) {
  const list: [string, string][] = Object.entries(headers ?? {})
  if (body !== undefined && !list.some(([name]) => name.toLowerCase() === 'content-type')) list.push(['Content-Type', 'application/json'])
  return { method: method.toUpperCase(), list, auth: token === null ? undefined : token, withAuth: token !== null }
}

const bodyText = (body: unknown, space?: number) => (typeof body === 'string' ? body : JSON.stringify(body, null, space))

/** curlOf writes the request for a shell. */
export function curlOf(request: SampleRequest): string {
  const { method, list, auth, withAuth } = parts(request)
  const lines = [`curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${sh(request.url)}`]
  if (withAuth) lines.push(auth === undefined ? `-H "Authorization: Bearer $${variable}"` : `-H ${sh(`Authorization: Bearer ${auth}`)}`)
  for (const [name, value] of list) lines.push(`-H ${sh(`${name}: ${value}`)}`)
  if (request.body !== undefined) lines.push(`--data-binary ${sh(bodyText(request.body))}`)
  return lines.join(' \\\n  ')
}

/** fetchOf writes the request for a browser or Node. */
export function fetchOf(request: SampleRequest): string {
  const { method, list, auth, withAuth } = parts(request)
  const headers = [...(withAuth ? [`    Authorization: ${auth === undefined ? `\`Bearer \${process.env.${variable}}\`` : JSON.stringify(`Bearer ${auth}`)},`] : []), ...list.map(([name, value]) => `    ${/^[A-Za-z]+$/.test(name) ? name : JSON.stringify(name)}: ${JSON.stringify(value)},`)]
  const init = [...(method === 'GET' ? [] : [`  method: ${JSON.stringify(method)},`]), ...(headers.length ? ['  headers: {', ...headers, '  },'] : [])]
  if (request.body !== undefined) init.push(`  body: ${typeof request.body === 'string' ? JSON.stringify(request.body) : `JSON.stringify(${indent(bodyText(request.body, 2), '  ')})`},`)
  const call = init.length ? `fetch(${JSON.stringify(request.url)}, {\n${init.join('\n')}\n})` : `fetch(${JSON.stringify(request.url)})`
  return `const response = await ${call}\nconst answer = await response.json()\nif (!response.ok) throw new Error(\`\${response.status} \${answer.error.code}: \${answer.error.message}\`)\nconsole.log(answer.data)`
}

/** goOf writes the request as a Go program. */
export function goOf(request: SampleRequest): string {
  const { method, list, auth, withAuth } = parts(request)
  const hasBody = request.body !== undefined
  const text = hasBody ? bodyText(request.body, 2) : ''
  const literal = text.includes('`') ? goString(text) : `\`${text}\``
  const needsOs = withAuth && auth === undefined
  const imports = ['fmt', 'io', 'log', 'net/http', ...(needsOs ? ['os'] : []), ...(hasBody ? ['strings'] : [])]
  const lines = [
    `req, err := http.NewRequest(${goString(method)}, ${goString(request.url)}, ${hasBody ? `strings.NewReader(${literal})` : 'nil'})`, 'if err != nil {', '\tlog.Fatal(err)', '}',
    ...(withAuth ? [`req.Header.Set("Authorization", ${auth === undefined ? `"Bearer "+os.Getenv("${variable}")` : goString(`Bearer ${auth}`)})`] : []),
    ...list.map(([name, value]) => `req.Header.Set(${goString(name)}, ${goString(value)})`),
    'res, err := http.DefaultClient.Do(req)', 'if err != nil {', '\tlog.Fatal(err)', '}', 'defer res.Body.Close()',
    'answer, err := io.ReadAll(res.Body)', 'if err != nil {', '\tlog.Fatal(err)', '}', 'fmt.Println(res.Status, string(answer))',
  ]
  return `package main\n\nimport (\n${imports.map((name) => `\t"${name}"`).join('\n')}\n)\n\nfunc main() {\n${lines.map((line) => `\t${line}`).join('\n')}\n}`
}

/** UseIt is on each entity and endpoint: the request with this tenant's host and real field names. */
export function UseIt({ request, title = 'Use it', children }: { request: SampleRequest; title?: ReactNode; children?: ReactNode }) {
  return (
    <CodeTabs title={title} tabs={[
      { label: 'curl', language: 'curl', text: curlOf(request) },
      { label: 'JavaScript', language: 'js', text: fetchOf(request) },
      { label: 'Go', language: 'go', text: goOf(request) },
    ]}>{children}</CodeTabs>
  )
}
