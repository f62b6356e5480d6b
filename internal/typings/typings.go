// Package typings describes what a tenant's logic components find, as TypeScript
// declarations: for editors, and for tsc --checkJs.
package typings

import (
	_ "embed" // for the declarations that all tenants share
	"maps"
	"slices"
	"strings"

	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
	"gatehouse/internal/schema"
	"gatehouse/internal/wtf8"
)

//go:embed globals.d.ts
var globals string

// Declarations returns the text of a .d.ts file: the globals, the tenant's entity types
// with their fields, the inputs of its components, the names of their secrets, and its
// modules, of which only the names are declared.
func Declarations(s *schema.Schema, defs *custom.Definitions) []byte {
	w := &writer{names: map[string]bool{}}
	w.line(strings.TrimSuffix(globals, "\n"))
	w.secrets(defs)
	var entities []string
	for _, e := range s.Entities {
		entities = append(entities, w.entity(e))
	}
	entities = append(entities, w.user(s.User))
	w.block("interface Entities", entities)
	var components []string
	for _, name := range slices.Sorted(maps.Keys(defs.Components)) {
		components = append(components, "  "+quote(name)+": "+inputsOf(defs.Components[name].Inputs)+";")
	}
	w.line("\n/** What each component declares that it takes: Inputs[\"NAME\"]. */")
	w.block("interface Inputs", components)
	for _, name := range slices.Sorted(maps.Keys(defs.Modules)) {
		w.line("declare module " + quote(name) + ";")
	}
	return []byte(w.b.String())
}

// writer writes declarations.
type writer struct {
	b     strings.Builder
	names map[string]bool // of interfaces, which are distinct
}

func (w *writer) line(text string) { w.b.WriteString(text + "\n") }

func (w *writer) block(head string, lines []string) {
	if len(lines) == 0 {
		w.line(head + " {}")
		return
	}
	w.line(head + " {\n" + strings.Join(lines, "\n") + "\n}")
}

// secrets declares the names that any component has.
func (w *writer) secrets(defs *custom.Definitions) {
	names := map[string]bool{}
	for _, c := range defs.Components {
		for name := range c.Secrets {
			names[name] = true
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		lines = append(lines, "  readonly "+name+": string;")
	}
	w.line("\n/** The texts that the manifest gives components as secrets: each has its own. */")
	w.block("declare const secrets:", lines)
	w.line("")
}

// entity declares an entity type, and returns its member of Entities.
func (w *writer) entity(e *schema.Entity) string {
	sorts, unique := []string{"created_at", "updated_at"}, []string(nil)
	for _, f := range e.Fields {
		if f.Sortable() {
			sorts = append(sorts, f.Name)
		}
		if f.Unique {
			unique = append(unique, f.Name)
		}
	}
	name := w.interfaces(e, []string{"  id: string;", "  owner_id: string;", "  created_at: string;", "  updated_at: string;"}, []string{"  owner_id?: string;"})
	return entry(e, name, sorts, unique)
}

// user declares the users, whose built-in members are those of contract U3: name and
// locale can be changed.
func (w *writer) user(e *schema.Entity) string {
	name := w.interfaces(e, []string{"  id: string;", "  email: string;", "  name: string;", "  locale: string;", `  userType: "internal" | "external";`,
		"  isOwner: boolean;", "  active: boolean;", "  created_at: string;", "  updated_at: string;"}, []string{"  name?: string;", "  locale?: string;"})
	return entry(e, name, nil, nil)
}

// entry returns the member of Entities of an entity type: the interfaces of its records
// and fields, and the fields that a list is sorted by and upsert finds a record by.
func entry(e *schema.Entity, name string, sorts, unique []string) string {
	return "  " + quote(e.Name) + ": { record: " + name + "; fields: " + name + "Fields; sorts: " + union(sorts) + "; unique: " + union(unique) + " };"
}

// interfaces declares a record and its fields, each with those members and the declared
// fields, and returns the name of the record's interface.
func (w *writer) interfaces(e *schema.Entity, record, fields []string) string {
	name := w.named(e.Name)
	for _, f := range e.Fields {
		is, mayBeNull, mayBeAbsent := typeOf(f), " | null", "?"
		if f.Required {
			mayBeNull, mayBeAbsent = "", ""
		}
		record = append(record, "  "+f.Name+": "+is+mayBeNull+";")
		fields = append(fields, "  "+f.Name+mayBeAbsent+": "+is+mayBeNull+";")
	}
	w.line("/** A record of " + e.Name + ". A field that the caller may not read is absent. */")
	w.block("interface "+name, record)
	w.block("interface "+name+"Fields", fields)
	w.line("")
	return name
}

// taken are names of the language and of globals.d.ts that an entity type could have.
var taken = strings.Fields(`Array ArrayBuffer Boolean Bytes Changes Condition Conditions Context DataView Date Delivery Encoding Entities Entity EntityName
	Error Exclude Extract Fields Function Inputs Intl Iterable Iterator Json Map Math NonNullable Number Object Omit Operators Ordered OwnedName Parameters Partial Pick
	Principal Promise Proxy Readonly Record Refusal Reflect Required Set Sorted String Symbol Where With`)

// named returns the name of an entity type's interface: order_line is OrderLine.
func (w *writer) named(entity string) string {
	name := ""
	for part := range strings.SplitSeq(entity, "_") {
		if part != "" {
			name += strings.ToUpper(part[:1]) + part[1:]
		}
	}
	for slices.Contains(taken, name) || w.names[name] || w.names[name+"Fields"] || w.names[strings.TrimSuffix(name, "Fields")] {
		name += "Entity"
	}
	w.names[name], w.names[name+"Fields"] = true, true
	return name
}

// typeOf returns the type of a field's values.
func typeOf(f *schema.Field) string {
	switch f.Type {
	case schema.Number:
		return "number"
	case schema.Boolean:
		return "boolean"
	case schema.Select:
		return union(f.Options)
	case schema.Multiselect:
		return "(" + union(f.Options) + ")[]"
	case schema.Multireference:
		return "string[]"
	case schema.JSON:
		return "any"
	}
	return "string" // text, dates and references
}

func union(options []string) string {
	if len(options) == 0 {
		return "never"
	}
	quoted := make([]string, len(options))
	for i, o := range options {
		quoted[i] = quote(o)
	}
	return strings.Join(quoted, " | ")
}

// quote returns a text as TypeScript has it: escapes of JSON are escapes there.
func quote(s string) string { return string(wtf8.AppendUTF8(nil, s)) }

func inputsOf(declared []inputs.Declaration) string {
	if len(declared) == 0 {
		return "Record<string, any>"
	}
	var list []string
	for _, d := range declared {
		is := map[inputs.Type]string{"text": "string", "number": "number", "boolean": "boolean"}[d.Type]
		if is == "" {
			is = "any"
		}
		if d.Required {
			list = append(list, quote(d.Name)+": "+is)
		} else {
			list = append(list, quote(d.Name)+"?: "+is+" | null")
		}
	}
	return "{ " + strings.Join(list, "; ") + " }"
}
