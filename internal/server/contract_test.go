//go:build !race

package server_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ruleOf     = regexp.MustCompile(`<a id="([^"]*)"></a>\*\*([A-Z][0-9]+)\. `)
	citation   = regexp.MustCompile(`\b[Cc]ontract ([A-Z][0-9]+(?:(?:, and |, | and | to |–)[A-Z][0-9]+)*)`)
	ruleName   = regexp.MustCompile(`[A-Z][0-9]+`)
	ruleLink   = regexp.MustCompile(`(?:contract\.md|\]\()#([a-z][0-9]+)\)`)
	elsewhere  = regexp.MustCompile(`\bdecisions (?:part )?[0-9]|\([Ss]pecification[,)]|\b[Ss]pecification's\b`)
	commentEnd = regexp.MustCompile(`\n\s*// ?`)
)

// TestCitationsOfTheContract: each rule of docs/contract.md has one anchor, and
// whatever cites a rule, in Go or in the documents, cites one that exists. No
// comment cites a document that is not in the repository.
func TestCitationsOfTheContract(t *testing.T) {
	const root = "../.."
	contract, err := os.ReadFile(root + "/docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, m := range ruleOf.FindAllStringSubmatch(string(contract), -1) {
		if anchor, rule := m[1], m[2]; anchor != strings.ToLower(rule) || rules[rule] {
			t.Errorf("docs/contract.md: rule %s has the anchor %q, or is there twice", rule, anchor)
		}
		rules[m[2]] = true
	}
	if n := strings.Count(string(contract), "<a id="); n != len(rules) || n < 100 {
		t.Errorf("docs/contract.md has %d anchors and %d rules", n, len(rules))
	}
	cited := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md"):
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, names := commentEnd.ReplaceAllString(string(raw), " "), []string{}
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			names = append(names, ruleName.FindAllString(m[1], -1)...)
		}
		if strings.HasSuffix(name, ".go") {
			cited += len(names)
			if m := elsewhere.FindString(text); m != "" {
				t.Errorf("%s cites %q: cite the rule of docs/contract.md", path, m)
			}
		} else {
			for _, m := range ruleLink.FindAllStringSubmatch(text, -1) {
				names = append(names, strings.ToUpper(m[1]))
			}
		}
		for _, rule := range names {
			if !rules[rule] {
				t.Errorf("%s cites rule %s, which docs/contract.md does not have", path, rule)
			}
		}
		return nil
	})
	if err != nil || cited < 100 {
		t.Errorf("found %d citations: %v", cited, err)
	}
}
