// Package typescript writes the types of the admin API as TypeScript: an interface for
// each Go type that a route takes or gives, and a table of the routes.
//
// It reads struct fields with json tags. A member whose tag has omitempty or omitzero is
// optional, a pointer may be null. A string type with a method Values() []string is the
// union of these values. Times and other types with a text form are strings; types with a
// JSON form of their own, raw JSON and any are unknown.
package typescript

import (
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/httpapi"
)

// Admin returns the TypeScript of the routes of the admin surface, in the order of their
// paths.
func Admin(routes []httpapi.Route) string {
	g := &generator{names: map[reflect.Type]string{}, taken: map[string]reflect.Type{}}
	routes = slices.Clone(routes)
	slices.SortStableFunc(routes, func(a, b httpapi.Route) int {
		return strings.Compare(a.Pattern+" "+a.Method, b.Pattern+" "+b.Method)
	})
	g.nameAll(routes)
	var table, list strings.Builder
	for _, r := range routes {
		g.route(&table, r)
		fmt.Fprintf(&list, "  %q: { method: %q, path: %q, needs: [%s] },\n", r.Method+" "+short(r.Pattern), r.Method, r.Pattern, quoted(r.Needs))
	}
	var b strings.Builder
	b.WriteString(head)
	for _, text := range g.declared() {
		b.WriteString(text)
	}
	b.WriteString("/** Each route of the admin API, by method and path below /admin/v1/. */\nexport interface AdminRoutes {\n" + table.String() + "}\n\n")
	b.WriteString("/** The routes as values: where they are, and the system permissions of which the viewer needs one. */\n")
	b.WriteString("export const adminRoutes = {\n" + list.String() + "} as const satisfies Record<keyof AdminRoutes, { method: string; path: string; needs: readonly string[] }>;\n")
	return b.String()
}

const head = `// Written by: go test ./internal/server -run TestGoldenAdminTypes -update
// Do not edit. The Go types of the routes (httpapi.Route: Takes, Gives) are the source.

/** Nothing: the route takes none. */
export type None = undefined;

`

func short(pattern string) string { return strings.TrimPrefix(pattern, "/admin/v1/") }

func quoted(list []string) string {
	var q []string
	for _, s := range list {
		q = append(q, fmt.Sprintf("%q", s))
	}
	return strings.Join(q, ", ")
}

type generator struct {
	names map[reflect.Type]string
	taken map[string]reflect.Type
	order []reflect.Type
}

var listMeta = reflect.TypeFor[httpapi.ListMeta]()

// route writes the entry of one route.
func (g *generator) route(b *strings.Builder, r httpapi.Route) {
	var params, query []string
	for segment := range strings.SplitSeq(r.Pattern, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			params = append(params, strings.TrimSuffix(name, "}")+": string")
		}
	}
	for _, name := range r.Query {
		if stem, ok := strings.CutSuffix(name, "*]"); ok {
			query = append(query, "[key: `"+stem+"${string}]`]: string | undefined")
		} else {
			query = append(query, fmt.Sprintf("%s?: string | number | boolean", member(name)))
		}
	}
	meta := "Record<string, never>"
	switch {
	case r.GivesMeta != nil:
		meta = g.typeOf(reflect.TypeOf(r.GivesMeta))
	case r.Gives != nil && reflect.TypeOf(r.Gives).Kind() == reflect.Slice:
		meta = g.typeOf(listMeta)
	}
	fmt.Fprintf(b, "  %q: { params: %s; query: %s; body: %s; data: %s; meta: %s };\n", r.Method+" "+short(r.Pattern),
		object(params), object(query), g.orNone(r.Takes), g.orNone(r.Gives), meta)
}

func object(members []string) string {
	if len(members) == 0 {
		return "None"
	}
	return "{ " + strings.Join(members, "; ") + " }"
}

func (g *generator) orNone(zero any) string {
	if zero == nil {
		return "None"
	}
	return g.typeOf(reflect.TypeOf(zero))
}

// member quotes a name that is no identifier.
func member(name string) string {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}

// nameAll gives each named type a name. Types of one name in two packages get those of
// their packages in front.
func (g *generator) nameAll(routes []httpapi.Route) {
	for _, r := range routes {
		for _, zero := range []any{r.Takes, r.Gives, r.GivesMeta} {
			if zero != nil {
				g.collect(reflect.TypeOf(zero))
			}
		}
		if r.Gives != nil && r.GivesMeta == nil && reflect.TypeOf(r.Gives).Kind() == reflect.Slice {
			g.collect(listMeta)
		}
	}
	count := map[string]int{}
	for _, t := range g.order {
		count[pascal(t.Name())]++
	}
	for _, t := range g.order {
		name := pascal(t.Name())
		if count[name] > 1 {
			name = pascal(path.Base(t.PkgPath())) + name
		}
		if other, twice := g.taken[name]; twice {
			panic(fmt.Sprintf("typescript: %v and %v have one name", other, t))
		}
		g.taken[name], g.names[t] = t, name
	}
}

func pascal(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// named reports whether a type is declared under its name: structs, and strings with a
// list of values.
func named(t reflect.Type) bool {
	if t.Name() == "" || strings.Contains(t.Name(), "[") || ownForm(t) != "" {
		return false
	}
	return t.Kind() == reflect.Struct || len(values(t)) > 0
}

func values(t reflect.Type) []string {
	if v, ok := reflect.Zero(t).Interface().(interface{ Values() []string }); ok && t.Kind() == reflect.String {
		return v.Values()
	}
	return nil
}

// ownForm returns the TypeScript of a type with a form of its own, "" for any other.
func ownForm(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "string"
	case t == reflect.TypeFor[jsontext.Value](), t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return "unknown"
	}
	switch reflect.New(t).Interface().(type) {
	case interface{ TypeScript() string }:
		return reflect.New(t).Interface().(interface{ TypeScript() string }).TypeScript()
	case json.Marshaler, interface {
		MarshalJSONTo(*jsontext.Encoder) error
	}:
		return "unknown"
	case encoding.TextMarshaler:
		return "string"
	}
	return ""
}

func (g *generator) collect(t reflect.Type) {
	if slices.Contains(g.order, t) {
		return
	}
	if named(t) {
		g.order = append(g.order, t)
	}
	if ownForm(t) != "" {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		g.collect(t.Elem())
	case reflect.Struct:
		for _, f := range fields(t) {
			g.collect(f.Type)
		}
	}
}

// fields returns the members of a struct, those of embedded structs included.
func fields(t reflect.Type) []reflect.StructField {
	var list []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && name != "-" && !(f.Anonymous && name == "") {
			list = append(list, f)
		}
	}
	return list
}

// declared returns the declarations of all named types, by name.
func (g *generator) declared() []string {
	slices.SortFunc(g.order, func(a, b reflect.Type) int { return strings.Compare(g.names[a], g.names[b]) })
	var list []string
	for _, t := range g.order {
		if v := values(t); len(v) > 0 {
			list = append(list, fmt.Sprintf("export type %s = %s;\n\n", g.names[t], strings.ReplaceAll(quoted(v), ", ", " | ")))
			continue
		}
		list = append(list, fmt.Sprintf("export interface %s {\n%s}\n\n", g.names[t], g.members(t, "  ", "\n")))
	}
	return list
}

func (g *generator) members(t reflect.Type, before, after string) string {
	var b strings.Builder
	for _, f := range fields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		optional := ""
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			optional = "?"
		}
		fmt.Fprintf(&b, "%s%s%s: %s;%s", before, member(name), optional, g.typeOf(f.Type), after)
	}
	return b.String()
}

// typeOf returns a type as it is written where it is used.
func (g *generator) typeOf(t reflect.Type) string {
	if name := g.names[t]; name != "" {
		return name
	}
	if own := ownForm(t); own != "" {
		return own
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.typeOf(t.Elem()) + " | null"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "string"
		}
		item := g.typeOf(t.Elem())
		if strings.Contains(item, "|") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case reflect.Map:
		return "Record<string, " + g.typeOf(t.Elem()) + ">"
	case reflect.Struct:
		return "{ " + strings.TrimSpace(g.members(t, "", " ")) + " }"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64, reflect.Float32, reflect.Float64:
		return "number"
	}
	panic(fmt.Sprintf("typescript: %v has no form in JSON", t))
}
