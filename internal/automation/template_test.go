package automation_test

import (
	"encoding/json"
	"testing"
)

func TestTemplatesKeepTypesAndInterpolate(t *testing.T) {
	const given = `{"email":"a\"b\\c\nü😀","score":19.90,"vip":false,"note":"{{inputs.email}} {{","data":{"n":null,"o":{"k":[1, 2]},"l":["x",{"y":1e3}],"__proto__":{"constructor":"plain"},"big":12345678901234567890,"a b":1,"0":"zero"}}`
	for template, want := range map[string]string{
		`{{inputs.email}}`:                          `"a\"b\\c\nü😀"`,
		`  {{inputs.score}}`:                        `"  19.90"`,
		`{{ inputs.score }}`:                        `19.90`,
		`{{inputs.vip}}`:                            `false`,
		`is {{inputs.vip}}`:                         `"is false"`,
		`{{inputs.data.n}}`:                         `null`,
		`<{{inputs.data.n}}>`:                       `"<>"`,
		`{{inputs.data.o}}`:                         `{"k":[1,2]}`,
		`{{inputs.data.o}} and {{inputs.data.l.1}}`: `"{\"k\":[1,2]} and {\"y\":1e3}"`,
		`{{inputs.data.l.0}}{{inputs.data.l.1.y}}`:  `"x1e3"`,
		`{{inputs.data.big}}`:                       `12345678901234567890`,
		`{{inputs.data.0}}`:                         `"zero"`,
		`{{inputs.data.__proto__.constructor}}`:     `"plain"`,
		`{{inputs.data.constructor}}`:               `null`,
		`{{inputs.note}}`:                           `"{{inputs.email}} {{"`, // never again
		`"{{inputs.note}}"`:                         `"\"{{inputs.email}} {{\""`,
		`{"a":{{inputs.score}}}`:                    `"{\"a\":19.90}"`,
		`}} { } {x}`:                                `"}} { } {x}"`,
		``:                                          `""`,
	} {
		quoted, _ := json.Marshal(template)
		s := flow(t, `- {type: output, set: {a: `+string(quoted)+`, b: [`+string(quoted)+`, {x: `+string(quoted)+`}]}}`)
		s.gives(given, `{"a":`+want+`,"b":[`+want+`,{"x":`+want+`}]}`, 1)
	}
}

func TestValuesAreNotTemplates(t *testing.T) {
	s := flow(t, `
- {type: set, values: {x: "{{inputs.note}}", half: "{{inputs.email}}"}}
- {type: set, values: {y: "{{vars.x}}", z: "{{vars.half}}inputs.email}}"}}
- {id: sum, type: component, component: total, inputs: {q: "{{vars.y}} {{vars.z}}"}}
- {type: output, set: {a: "{{vars.y}}!", b: "{{vars.z}}"}}`)
	s.gives(`{"email":"{{","note":"{{inputs.email}}"}`, `{"a":"{{inputs.email}}!","b":"{{inputs.email}}"}`, 4)
	s.called(`component total {"q":"{{inputs.email}} {{inputs.email}}"}`)
}
