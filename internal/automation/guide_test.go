package automation

import (
	"os"
	"strings"
	"testing"
)

// TestGuideListsTheLanguageOfConditions: the table of docs/endpoints.md has everything
// that a condition may use.
func TestGuideListsTheLanguageOfConditions(t *testing.T) {
	b, err := os.ReadFile("../../docs/endpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "### The language of `when`")
	section, _, _ = strings.Cut(section, "\n## ")
	section = strings.ReplaceAll(section, `\|`, "|")
	named := func(kind, name string) {
		if !strings.Contains(section, "`"+name) && !strings.Contains(section, " "+name+" ") && !strings.Contains(section, "1"+name+"5") {
			t.Errorf("the guide does not name the %s %s", kind, name)
		}
	}
	for name := range functions {
		named("function", name)
	}
	for name := range loops {
		named("function", name)
	}
	for name := range operators {
		if name != "^" { // another way to write **
			named("operator", name)
		}
	}
	for _, limit := range []string{"2,000 bytes", "2,000,000 steps"} {
		if !strings.Contains(section, limit) || MaxCondition != 2_000 || MaxSteps != 2_000_000 {
			t.Errorf("the guide does not name the limit of %s", limit)
		}
	}
}

// TestExpressionsOfTheGuide compiles the examples of the guide.
func TestExpressionsOfTheGuide(t *testing.T) {
	for _, text := range []string{
		`inputs.score > 50 and vars.region in ["EU", "CH"]`, `inputs.lines.0.sku == 'x'`, `inputs.tags[0] != nil`, `1 == 1.0`, `inputs.a?.b ?? true`,
		`inputs.name matches "^a.*z$"`, `any(inputs.lines, #.price > 100)`, `3 in 1..5`, `type(inputs.a) == "string"`, `inputs.vip`, `{{inputs.vip}}`,
		`not (len(inputs.lines) > 2 || first(inputs.lines).a startsWith "b")`, `inputs.a ? inputs.b : inputs.c`,
	} {
		if _, problem := parseCondition(text); problem != "" {
			t.Errorf("%s: %s", text, problem)
		}
	}
}
