package automation

import "slices"

// MemberKind says what a member of a node holds, for a form.
type MemberKind string

// The kinds of members.
const (
	EntityMember     MemberKind = "entity"     // the name of an entity type
	TemplateMember   MemberKind = "template"   // a text that may contain {{…}}
	FieldsMember     MemberKind = "fields"     // an object: fields that can be set, with values
	FieldMember      MemberKind = "field"      // the name of a field
	WhereMember      MemberKind = "where"      // an object: indexed fields, with values
	ComponentMember  MemberKind = "component"  // the name of a logic component
	InputsMember     MemberKind = "inputs"     // an object: inputs of the component, with values
	ReturnsMember    MemberKind = "returns"    // an object: paths of what the component returned, with declared outputs
	ValuesMember     MemberKind = "values"     // an object: names of vars, with values
	OutputsMember    MemberKind = "outputs"    // an object: declared outputs, with values
	ExpressionMember MemberKind = "expression" // a condition
	NameMember       MemberKind = "name"       // a name of the author's choice
	CodeMember       MemberKind = "code"       // a code like OUT_OF_STOCK
	NumberMember     MemberKind = "number"     // a whole number of Low to High
	ChoiceMember     MemberKind = "choice"     // one of Values
	NodesMember      MemberKind = "nodes"      // a list of nodes
)

// MemberDescription describes a member of a type of node.
type MemberDescription struct {
	Name     string     `json:"name"`
	Kind     MemberKind `json:"kind"`
	Doc      string     `json:"doc"`
	Required bool       `json:"required"`
	Values   []string   `json:"values,omitempty"`
	Low      int        `json:"low,omitempty"`
	High     int        `json:"high,omitempty"`
	Default  string     `json:"default,omitempty"`
}

// NodeDescription describes a type of node (contract F2).
type NodeDescription struct {
	Type    string              `json:"type"`
	Doc     string              `json:"doc"`
	Members []MemberDescription `json:"members"`
	// Readable says that later nodes may read the result by the node's id; Result
	// says what it is.
	Readable bool   `json:"readable"`
	Result   string `json:"result,omitempty"`
}

// memberDescriptions describes each member by its name. A name means the same in
// every type, except that only record.update and record.upsert require fields.
var memberDescriptions = map[string]MemberDescription{
	"entity":    {Kind: EntityMember, Doc: "the entity type", Required: true},
	"record_id": {Kind: TemplateMember, Doc: "the id of the record", Required: true},
	"by":        {Kind: FieldMember, Doc: "the unique field by which the record is found", Required: true},
	"fields":    {Kind: FieldsMember, Doc: "what to set"},
	"where":     {Kind: WhereMember, Doc: "the records whose fields have these values"},
	"sort":      {Kind: TemplateMember, Doc: "one or two fields with a comma between them, - before one that begins with the greatest"},
	"search":    {Kind: TemplateMember, Doc: "words that the searchable fields have, * behind the beginning of one"},
	"limit":     {Kind: NumberMember, Doc: "the most records", Low: 1, High: maxListLimit, Default: "50"},
	"user":      {Kind: TemplateMember, Doc: "the id or e-mail address of a user; or a role"},
	"role":      {Kind: TemplateMember, Doc: "the name of a role; or a user"},
	"access":    {Kind: ChoiceMember, Doc: "what the share lets do", Required: true, Values: []string{"read", "edit"}},
	"component": {Kind: ComponentMember, Doc: "the logic component", Required: true},
	"inputs":    {Kind: InputsMember, Doc: "what it is given"},
	"outputs":   {Kind: ReturnsMember, Doc: "which parts of its result become outputs of the flow"},
	"values":    {Kind: ValuesMember, Doc: "names, read as vars.NAME from here on", Required: true},
	"set":       {Kind: OutputsMember, Doc: "declared outputs", Required: true},
	"when":      {Kind: ExpressionMember, Doc: "a condition, like inputs.score > 50", Required: true},
	"then":      {Kind: NodesMember, Doc: "what runs if it holds"},
	"else":      {Kind: NodesMember, Doc: "what runs if it does not"},
	"in":        {Kind: TemplateMember, Doc: "a list", Required: true},
	"as":        {Kind: NameMember, Doc: "the name of the item", Required: true},
	"do":        {Kind: NodesMember, Doc: "what runs for each item", Required: true},
	"message":   {Kind: TemplateMember, Doc: "what the caller is told", Required: true},
	"code":      {Kind: CodeMember, Doc: "a code like OUT_OF_STOCK", Default: "EXECUTION_ERROR"},
	"status":    {Kind: NumberMember, Doc: "the HTTP status", Low: 400, High: 599, Default: "422"},
	"on_skip":   {Kind: ChoiceMember, Doc: "what happens when it cannot read what it needs: skip it, or fail the run", Values: OnSkip, Default: "as the flow"},
}

// nodeDocs says what each type of node does and what its result is.
var nodeDocs = map[string][2]string{
	"record.create":  {"creates a record, or several of a list of fields", "the record; of a list the list of records"},
	"record.get":     {"reads a record by its id", "the record; null when it is absent or hidden"},
	"record.list":    {"finds records", "{records, hasMore}"},
	"record.update":  {"changes a record", "the record"},
	"record.upsert":  {"changes the record that has a unique value, or creates one", "the record"},
	"record.delete":  {"deletes a record", "{id, deleted: true}"},
	"record.share":   {"shares a record with a user or a role", "the share"},
	"record.unshare": {"takes a share back", "{user, role, deleted: true}"},
	"component":      {"runs a logic component", "what it returned"},
	"set":            {"keeps values under names", ""},
	"output":         {"writes declared outputs", ""},
	"if":             {"runs one of two branches", ""},
	"each":           {"runs nodes for each item of a list", ""},
	"fail":           {"ends the run with an error; nothing is kept", ""},
}

// Describe returns every type of node with its members, in the order in which
// messages list them.
func Describe() []NodeDescription {
	list := make([]NodeDescription, len(nodeTypes))
	for i := range nodeTypes {
		t := &nodeTypes[i]
		d := NodeDescription{Type: t.name, Doc: nodeDocs[t.name][0], Readable: t.readable, Result: nodeDocs[t.name][1], Members: []MemberDescription{}}
		for _, name := range append(slices.Clone(t.members), "on_skip") {
			m := memberDescriptions[name]
			m.Name = name
			m.Required = m.Required || (t.name == "record.update" || t.name == "record.upsert") && name == "fields"
			m.Values = slices.Clone(m.Values)
			d.Members = append(d.Members, m)
		}
		list[i] = d
	}
	return list
}
