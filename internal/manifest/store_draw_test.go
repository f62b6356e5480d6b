package manifest_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"pgregory.net/rapid"
)

// drawDefinitions draws components, automations and the endpoints that call
// them. It draws webhooks only where there is a user that they can run as.
func drawDefinitions(r *rapid.T, m yamlMap, users []any) {
	context := func() any {
		if len(users) > 0 && rapid.Bool().Draw(r, "specific") {
			return yamlMap{"specific_user": strings.ToUpper(users[0].(yamlMap)["email"].(string))}
		}
		return rapid.SampledFrom([]string{"caller", "system"}).Draw(r, "context")
	}
	components, automations, endpoints := []any{}, []any{}, []any{}
	names := drawNames(r, "components", 3, identifiers)
	for _, name := range names {
		components = append(components, yamlMap{"name": name, "source": "x" + drawSource(r), "execution_context": context(),
			"timeout_ms": rapid.IntRange(1, 30_000).Draw(r, "timeout"), "inputs": drawDeclarations(r), "outputs": drawDeclarations(r)})
	}
	flows := drawNames(r, "automations", 3, identifiers)
	for _, name := range flows {
		nodes := []any{yamlMap{"type": "set", "values": yamlMap{"a": drawJSON(r, 3), "b": drawJSON(r, 1)}}}
		if len(names) > 0 {
			given := yamlMap{drawText(r, "input"): drawJSON(r, 2)}
			for _, one := range components[0].(yamlMap)["inputs"].([]any) {
				given[one.(yamlMap)["name"].(string)] = "{{event.id}}"
			}
			inner := yamlMap{"type": "component", "component": names[0], "inputs": given}
			nodes = append(nodes, yamlMap{"type": "if", "when": "vars.a == 1 or\nvars.b == 2", "then": []any{inner}, "else": []any{inner}})
		}
		automations = append(automations, yamlMap{"name": name, "trigger": "http.request", "execution_context": context(),
			"input_schema": drawDeclarations(r), "outputs": drawDeclarations(r), "nodes": nodes})
	}
	for i, slug := range drawNames(r, "slugs", 4, rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,5}[a-z]`)) {
		e := yamlMap{"slug": slug, "log_requests": rapid.Bool().Draw(r, "log"), "max_body_bytes": rapid.IntRange(1, 10<<20).Draw(r, "body")}
		switch {
		case len(names) > 0 && i%2 == 0:
			e["target"] = yamlMap{"component": names[0]}
		case len(flows) > 0:
			e["target"] = yamlMap{"automation": flows[0]}
		default:
			continue
		}
		if len(users) > 0 && rapid.Bool().Draw(r, "webhook") {
			e["auth"], e["reply"] = "token", rapid.SampledFrom([]string{"result", "receipt"}).Draw(r, "reply")
			e["run_as"], e["rate_limit_per_minute"] = users[len(users)-1].(yamlMap)["email"], rapid.IntRange(1, 5000).Draw(r, "rate")
		} else {
			e["external_users"] = rapid.Bool().Draw(r, "external")
		}
		endpoints = append(endpoints, e)
	}
	m["logic_components"], m["automations"], m["custom_endpoints"] = components, automations, endpoints
	m["dedup_retention_days"] = rapid.SampledFrom([]int{0, 30, 36_500}).Draw(r, "retention")
	oneLine := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
				return -1
			}
			return r
		}, s)
	}
	m["email_templates"] = yamlMap{"external-user-welcome": yamlMap{
		"subject": "s" + noTemplate(oneLine(drawText(r, "subject"))), "text": "t" + drawSource(r), "html": "{{name}}" + drawSource(r)}}
}

// drawSource draws several lines of arbitrary text.
func drawSource(r *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom([]string{"", " ", "\t", "  x", "x  ", "${HOME}", "\r"}),
		rapid.StringMatching(`[A-Za-z0-9 .,:;#\[\]&*!|>'"%@äß→\t-]{1,20}`)), 0, 5).Draw(r, "source"), "\n")
}

func drawDeclarations(r *rapid.T) []any {
	list := []any{}
	for _, name := range drawNames(r, "declarations", 3, rapid.StringMatching(`[A-Za-z0-9äß_-]{1,8}`)) {
		one := yamlMap{"name": name, "type": rapid.SampledFrom([]string{"text", "number", "boolean", "json"}).Draw(r, "type"),
			"required": rapid.Bool().Draw(r, "required")}
		if one["type"] == "text" {
			one["pattern"] = rapid.SampledFrom([]string{"", "^[^@ ]+@[^@ ]+$", "a: # b"}).Draw(r, "pattern")
		}
		list = append(list, one)
	}
	return list
}

// drawJSON draws a value that a node may contain.
func drawJSON(r *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 7).Draw(r, "kind"); {
	case kind == 0:
		return nil
	case kind == 1:
		return rapid.Bool().Draw(r, "bool")
	case kind == 2:
		return rapid.SampledFrom([]any{0, -7, 0.1, 1e-9, 1e21, 9007199254740993, 18446744073709551615.0, 123456.5}).Draw(r, "number")
	case kind == 3 && depth > 0:
		return []any{drawJSON(r, depth-1), drawJSON(r, depth-1), []any{}}
	case kind == 4 && depth > 0:
		return yamlMap{"k" + drawText(r, "key"): drawJSON(r, depth-1), "x": drawJSON(r, depth-1), "": yamlMap{}}
	case kind == 5:
		return drawSource(r)
	}
	return noTemplate(drawText(r, "text"))
}

// noTemplate returns a text without the beginnings of templates in it.
func noTemplate(text string) string { return strings.ReplaceAll(text, "{{", "") }

// flowText returns a value as YAML on one line. The library's own encoder
// writes some texts in a form that no parser can read back.
func flowText(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return strconv.QuoteToASCII(v) // YAML has the same escapes
	case yamlMap:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, flowText(key)+": "+flowText(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []string:
		for _, item := range v {
			parts = append(parts, flowText(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		for _, item := range v {
			parts = append(parts, flowText(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
