package mail

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// The links with tokens. Whoever has one has the account that it is about, so a template
// must not carry it anywhere but to who reads the mail: not into the address of a picture,
// of another site or of a form, nor into the subject, which lists of mails show.
var tokenLinks = []string{"verify_url", "reset_url"}

// linkMark begins what stands for a link with a token while a template is checked; a number
// and a dot follow.
const linkMark = "linkwithatoken"

var aMark = regexp.MustCompile(linkMark + `[0-9]+\.`)

// marked returns a text with marks in the place of its links with tokens, each with its
// number, and the other variables filled in with a letter. count is how many marks it has.
func marked(s string) (text string, count int) {
	text = fill(s, func(variable string) (string, bool) {
		if slices.Contains(tokenLinks, variable) {
			count++
			return linkMark + strconv.Itoa(count) + ".", true
		}
		_, known := (Values{}).lookUp(variable)
		return "x", known
	})
	return text, count
}

const linkPlace = "{{verify_url}} and {{reset_url}} hold a token: expected them "

// checkLinks returns an error if a link with a token is part of another address, or
// anything but text or the whole href of an <a>.
func (t Template) checkLinks() error {
	if _, count := marked(t.Subject); count > 0 {
		return errors.New("subject: " + linkPlace + "in the text and in the HTML alone")
	}
	if text, _ := marked(t.Text); !standsAlone(text) {
		return errors.New("text: " + linkPlace + "after a space or at the start of a line")
	}
	text, count := marked(t.HTML)
	for _, scripting := range []bool{false, true} { // mail programs read <noscript> in either way
		doc, err := html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(scripting))
		if err != nil {
			return fmt.Errorf("html: %w", err)
		}
		seen := map[string]bool{}
		if !linksAreSafe(doc, seen) || len(seen) != count { // what is not seen is in a tag that does not end
			return errors.New("html: " + linkPlace + `between tags, after a space or at the start, or as a whole <a href="…">`)
		}
	}
	return nil
}

// standsAlone reports whether each link in a text begins there, and is not the end of
// another address.
func standsAlone(s string) bool {
	for {
		before, after, found := strings.Cut(s, linkMark)
		if !found {
			return true
		}
		if r, size := utf8.DecodeLastRuneInString(before); size > 0 && !unicode.IsSpace(r) && !strings.ContainsRune(`<>([{"'“„«»`, r) {
			return false
		}
		s = after
	}
}

// notText are elements whose text is not shown as text, but run, sent or read as addresses.
var notText = []string{
	"script", "style", "title", "textarea", "select", "option", "datalist", "button", "template", "noscript",
	"xmp", "iframe", "noembed", "noframes", "plaintext", "object", "svg", "math",
}

// linksAreSafe reports whether every link in a document stands where it may. seen gets their
// marks.
func linksAreSafe(n *html.Node, seen map[string]bool) bool {
	found := aMark.FindAllString(n.Data, -1)
	switch {
	case n.Type == html.ElementNode:
		if len(found) > 0 || !attributesAreSafe(n, seen) {
			return false
		}
	case len(found) > 0 && (n.Type != html.TextNode || !standsAlone(n.Data) || within(n, notText)):
		return false
	}
	for _, one := range found {
		seen[one] = true
	}
	for child := range n.ChildNodes() {
		if !linksAreSafe(child, seen) {
			return false
		}
	}
	return true
}

func attributesAreSafe(n *html.Node, seen map[string]bool) bool {
	for _, a := range n.Attr {
		found := aMark.FindString(a.Namespace + a.Key + a.Val)
		if found == "" {
			continue
		}
		if n.Data != "a" || n.Namespace != "" || a.Key != "href" || strings.TrimSpace(a.Val) != found {
			return false
		}
		seen[found] = true
	}
	return true
}

// within reports whether a node stands in one of some elements.
func within(n *html.Node, names []string) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if slices.Contains(names, p.Data) {
			return true
		}
	}
	return false
}
