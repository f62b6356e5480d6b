package examples_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/component"
)

// TestTheSourcesOfTheGuidesCompile compiles the JavaScript of docs/endpoints.md and that
// of the manifests of docs/manifest.md.
func TestTheSourcesOfTheGuidesCompile(t *testing.T) {
	engine, err := start()
	if err != nil {
		t.Fatal(err)
	}
	compiled := 0
	compile := func(source component.Source) {
		t.Helper()
		compiled++
		if _, err := engine.CompileFor(t.Context(), "guide", source); err != nil {
			t.Errorf("%v\n%s", err, source.Text)
		}
	}
	for _, text := range guide(t, "endpoints", "js") {
		if !strings.Contains(text, "export default") { // the middle of a verifier
			text = "export default ({rawBody}) => {\n" + text + "}"
		}
		if strings.HasSuffix(strings.TrimSpace(text), "{") { // the beginning of a handler
			text += "}"
		}
		compile(component.Source{Text: text})
	}
	for _, text := range guide(t, "manifest", "yaml") {
		var m struct {
			Modules []struct {
				Name   string `yaml:"name"`
				Source string `yaml:"source"`
			} `yaml:"modules"`
			Components []struct {
				Source  string            `yaml:"source"`
				Secrets map[string]string `yaml:"secrets"`
			} `yaml:"logic_components"`
		}
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		modules := map[string]string{}
		for _, one := range m.Modules {
			modules[one.Name] = one.Source
		}
		for _, c := range m.Components {
			compile(component.Source{Text: c.Source, Modules: modules, Secrets: c.Secrets})
		}
	}
	if compiled < 7 {
		t.Errorf("the guides have %d sources", compiled)
	}
}

// guide returns the blocks of a language in a page of docs.
func guide(t *testing.T, page, language string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		list = append(list, block)
	}
	return list
}
