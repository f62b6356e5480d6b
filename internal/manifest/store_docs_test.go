package manifest_test

import (
	"os"
	"strings"
	"testing"

	"gatehouse/internal/manifest"
)

// TestTheReferenceIsRight applies every manifest in docs/manifest.md, in order, and those
// of two guides, with what they take for granted.
func TestTheReferenceIsRight(t *testing.T) {
	b, err := os.ReadFile("../../docs/manifest.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	each(t, func(p *place) {
		p.vars["OLIVIA_PASSWORD"] = "correct horse battery"
		p.vars["SHOP_SECRET"], p.vars["OLD_SHOP_SECRET"] = "the secret of the shop", "the old secret of the shop"
		p.vars["PAYMENT_KEY"] = "the key of the payment provider"
		applied := 0
		for part := range strings.SplitSeq(doc, "```yaml\n") {
			src, _, isBlock := strings.Cut(part, "```")
			if isBlock && strings.HasPrefix(src, "tenant:") {
				p.apply(src)
				applied++
			}
		}
		if applied < 8 {
			p.Errorf("only %d manifests were found", applied)
		}
		p.apply("tenant: guide\npermission_sets: [{name: portal}]\nentities: [{name: lead, fields: [{name: email, type: text, indexed: true}]}]\n")
		for _, page := range []string{"endpoints", "external-identity"} {
			b, err := os.ReadFile("../../docs/" + page + ".md")
			if err != nil {
				t.Fatal(err)
			}
			for i, part := range strings.Split(string(b), "```yaml\n") {
				src, _, _ := strings.Cut(part, "```")
				if i > 0 {
					p.apply("tenant: guide\n" + strings.TrimPrefix(src, "tenant: acme\n"))
				}
			}
		}
		p.printed(p.apply("tenant: bare\n"), "create tenant bare")
		if _, err := p.try(p.export("bare"), manifest.Options{Prune: true}); err != nil {
			p.Error(err)
		}
	})
	for _, s := range []string{"register_per_ip_per_hour", "can_manage_external_users", "unauthenticated_per_ip_per_minute", "public_read_write",
		"dedup_retention_days", "previous_webhook_secret", "external-user-email-verification"} {
		if !strings.Contains(doc, s) {
			t.Errorf("docs/manifest.md does not name %s", s)
		}
	}
}
