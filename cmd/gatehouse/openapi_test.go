package main

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestOpenAPI prints the documents of a tenant.
func TestOpenAPI(t *testing.T) {
	each(t, func(x *cli) {
		x.stdin = whyManifest
		x.ok("apply", "-f", "-")
		schemas := func(args ...string) (names []string) {
			x.t.Helper()
			out, _ := x.ok(append([]string{"openapi", "--tenant", "acme"}, args...)...)
			var doc struct {
				OpenAPI    string
				Components struct{ Schemas map[string]any }
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil || doc.OpenAPI != "3.1.0" {
				x.t.Fatalf("%v: %.200s", err, out)
			}
			for _, name := range []string{"contact", "contact.update", "user"} {
				if doc.Components.Schemas[name] != nil {
					names = append(names, name)
				}
			}
			return names
		}
		for _, c := range []struct {
			as   []string
			want string
		}{
			{nil, "[contact contact.update user]"},
			{[]string{"--as", "cora@acme.example"}, "[contact contact.update]"},
			{[]string{"--as", "RITA@acme.example"}, "[contact user]"},
			{[]string{"--as", "nina@acme.example"}, "[]"},
		} {
			if got := fmt.Sprint(schemas(c.as...)); got != c.want {
				x.t.Errorf("%v: schemas %s, want %s", c.as, got, c.want)
			}
		}
		x.fails(1, "there is no user with the e-mail address", "openapi", "--tenant", "acme", "--as", "nobody@acme.example")
		x.fails(1, "there is no tenant", "openapi", "--tenant", "nobody")
	})
}
