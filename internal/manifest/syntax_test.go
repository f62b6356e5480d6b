package manifest

import (
	"strings"
	"testing"
)

// TestMistakesOfYAMLAreToldWithTheirRemedy checks that an error names the line
// of the mistake, not the line at which the parser gives up.
func TestMistakesOfYAMLAreToldWithTheirRemedy(t *testing.T) {
	const tab, quotes = "the line is indented with a tab: YAML takes spaces alone", `needs quotes inside of {…} and […]: write "${OLIVIA}"`
	for src, want := range map[string]string{
		"tenant: acme\nusers:\n\t- {email: a@b.example}\n":                                               "f.yaml:3: not YAML: " + tab,
		"tenant: acme\nroles:\n  - name: a\n\t  parent: b\n":                                             "f.yaml:4: not YAML: " + tab,
		"tenant: acme\nlogic_components:\n  - name: x\n    source: |\n\t\texport default 1\n":            "f.yaml:5: not YAML: " + tab,
		"tenant: acme\nusers:\n  - {email: a@b.example, password: ${OLIVIA}}\n":                          "f.yaml:3: not YAML: ${OLIVIA} " + quotes,
		"tenant: acme\nusers: [{email: a@b.example, password: ${OLIVIA}, name: x}]\n":                    "f.yaml:2: not YAML: ${OLIVIA} " + quotes,
		"tenant: acme\nhosts: [${OLIVIA}]\n":                                                             "f.yaml:2: not YAML: ${OLIVIA} " + quotes,
		"tenant: acme\nhosts: [\"${A}\", ${OLIVIA}]\n":                                                   "f.yaml:2: not YAML: ${OLIVIA} " + quotes,
		"tenant: acme\nusers:\n  - {email: a@b.example,\n     password: ${OLIVIA}}\n":                    "f.yaml:4: not YAML: ${OLIVIA} " + quotes,
		"tenant: acme\nhosts: [a b: c}\n":                                                                "f.yaml:2: not YAML: did not find expected ',' or ']'",
		"tenant: acme\ndisplay_name: @home\n":                                                            "f.yaml:2: not YAML: found character that cannot start any token; a text that begins with @",
		"tenant: acme\ndisplay_name: one: two\n":                                                         `f.yaml:2: not YAML: mapping values are not allowed in this context; a text with ": " in it needs quotes`,
		"tenant: acme\nroles:\n  - name: a\n  - name: b\n  -name: c\n":                                   `f.yaml:5: not YAML: did not find expected '-' indicator; the items of the list that begins on line 3 stand in one column, each behind "- "`,
		"tenant: acme\nroles:\n  - name: a\n    parent: b\n   x: c\nsharing_rules: []\n":                 "f.yaml:5: not YAML: did not find expected '-' indicator",
		"tenant: acme\nhosts: []\nroles: []\n- name: a\n":                                                "f.yaml:4: not YAML: did not find expected key; the keys of the mapping stand in one column",
		"tenant: acme\nusers:\n  - email: ${A}\n    name: b\n     type: c\n":                             "f.yaml:5: not YAML: mapping values are not allowed",
		"tenant: acme\nusers:\n  - email: a@b.example\n    password: ${OLIVIA}\n   name: x\n":            "f.yaml:5: not YAML: did not find expected '-' indicator",
		"tenant: acme\nroles:\n  - {name: a\n  - {name: b}\n":                                            "f.yaml:3: not YAML: did not find expected ',' or '}'; a comma or the closing } is missing",
		"tenant: acme\nroles: [{name: \"\x01\"}]\n":                                                      "f.yaml:2: not YAML: control characters are not allowed",
		"tenant: acme\nlogic_components:\n  - name: x\n    source: |\n      a\n\tb\n":                    "f.yaml:6: not YAML: " + tab,
		"tenant: acme\ndisplay_name: {{name}}\n":                                                         `f.yaml:2: display_name: expected text, found a mapping (a text with {{…}} needs quotes: "{{…}}")`,
		"tenant: acme\nautomations:\n  - name: x\n    nodes:\n      - {type: output, set: {a: {{b}}}}\n": `f.yaml:5: a text with {{…}} needs quotes: "{{…}}"`,
	} {
		err := Check("f.yaml", []byte(src), func(string) string { return "value" })
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+want) {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
}
