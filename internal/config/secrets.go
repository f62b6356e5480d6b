package config

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
)

// maxConfigDepth is how deeply a component's config may be nested.
const maxConfigDepth = 64

// configOf reads a component's config; nil for one without members.
func (d *decoder) configOf(n *Value) jsontext.Value {
	const expected = "a JSON object"
	if n.Kind == JSON && n.JSON.Kind() != '{' || n.Kind != JSON && n.Kind != Mapping {
		d.wrong(n, expected)
		return nil
	}
	if n.deeper(maxConfigDepth) {
		d.bad(n, "expected at most %d levels of lists and objects", maxConfigDepth)
		return nil
	}
	before := len(d.List)
	v := d.json(n, "config", map[string]Place{})
	if len(d.List) > before || string(v) == "{}" {
		return nil
	}
	if len(v) > component.MaxConfig {
		d.bad(n, "expected at most %d KiB of JSON, found %d bytes", component.MaxConfig>>10, len(v))
		return nil
	}
	return v
}

// deeper reports whether a value has more than most levels of lists and objects.
func (v *Value) deeper(most int) bool {
	if v.Kind != List && v.Kind != Mapping {
		return false
	}
	if most == 0 {
		return true
	}
	for _, item := range v.Items {
		if item.deeper(most - 1) {
			return true
		}
	}
	for _, m := range v.Members {
		if m.Value.deeper(most - 1) {
			return true
		}
	}
	return false
}

// secrets reads a component's secrets; messages never show one.
func (d *decoder) secrets(n *Value) map[string]*string {
	given := map[string]*string{}
	if n.Kind == Mapping && len(n.Members) > component.MaxSecrets {
		d.bad(n, "expected at most %d secrets, found %d", component.MaxSecrets, len(n.Members))
		return given
	}
	d.mapping(n, "secrets", func(key, value *Value) {
		if !custom.ValidSecretName(key.Text) {
			d.fail(key, "secrets: expected a name of at most 63 letters, digits and _, like PAYMENT_KEY, found %s", show(key.Text))
			return
		}
		if value.Kind == Null {
			given[key.Text] = nil
			return
		}
		s, ok := d.text(value)
		switch {
		case !ok:
			return
		case utf8.RuneCountInString(s) < component.MinSecret:
			d.bad(value, "expected a secret of at least %d characters: a shorter one could not be redacted", component.MinSecret)
			return
		case len(s) > component.MaxSecret:
			d.bad(value, "expected a secret of at most %d KiB", component.MaxSecret>>10)
			return
		}
		given[key.Text] = &s
	})
	return given
}

// sealAll returns the secrets of a component as they are stored; prev is the stored
// component, or nil.
func (p *plan) sealAll(decl *componentDecl, prev *custom.Component) map[string]string {
	var stored map[string]string
	if prev != nil {
		stored = prev.Secrets
	}
	if decl.secrets == nil {
		return stored
	}
	sealed := make(map[string]string, len(decl.secrets))
	for _, name := range sortedKeys(decl.secrets) {
		given := decl.secrets[name]
		if given == nil && stored[name] == "" {
			p.add(p.m.place("logic_components", decl.Name, "secrets"), "logic component %s: secrets: %s: there is none to keep: expected its text, or ${%s}", decl.Name, name, name)
			continue
		}
		sealed[name] = p.seal(custom.ComponentSecretPurpose, stored[name], given)
	}
	return sealed
}

// jsonOrNull is JSON as Export has it; Null for none.
func jsonOrNull(v jsontext.Value) *Value {
	if len(v) == 0 {
		return &Value{}
	}
	return &Value{Kind: JSON, JSON: v.Clone()}
}

// secretNames is what Export has of secrets: that they are kept. It is Null for none.
func secretNames(secrets map[string]string) *Value {
	if len(secrets) == 0 {
		return &Value{}
	}
	v := block()
	for _, name := range sortedKeys(secrets) {
		v.Members = append(v.Members, Member{str(name), &Value{}})
	}
	return v
}

// secretStates is what the change history has of secrets.
func secretStates(secrets map[string]string, prev *componentDecl) *Value {
	v := block()
	for _, name := range sortedKeys(secrets) {
		was := ""
		if prev != nil {
			was = prev.Secrets[name]
		}
		v.Members = append(v.Members, Member{str(name), sealedText(secrets[name], was)})
	}
	return v
}
