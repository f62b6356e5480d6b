import { typeWords, type Doc, type Schema } from './document'

/** FieldList is a table of names, types and notes. */
export function FieldList({ title, doc, rows }: { title: string; doc: Doc; rows: readonly { name: string; schema: Schema; required: boolean; about?: string | undefined }[] }) {
  if (rows.length === 0) return null
  return (
    <section>
      <h3 className="s12 second">{title}</h3>
      <table className="tbl flat reffields">
        <thead className="sr"><tr><th>Name</th><th>Type</th><th>Note</th></tr></thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.name}>
              <td className="mono">{r.name}</td>
              <td>{typeWords(doc, r.schema)}{r.required && <span className="muted">, required</span>}</td>
              <td className="second">{r.about ?? r.schema.description}{r.schema.readOnly && ' closed to edits'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
