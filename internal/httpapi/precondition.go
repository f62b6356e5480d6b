package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"gatehouse/internal/fault"
)

// ETag returns the strong entity tag of a representation (contract R16): of what the
// viewer reads, so that it tells nothing of what is hidden from them.
func ETag(representation []byte) string {
	sum := sha256.Sum256(representation)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// Tags are what an If-Match or If-None-Match header names (RFC 9110, 13.1).
type Tags struct {
	any  bool
	list []string // with W/ where they are weak
}

// ParseTags reads a header of entity tags. It returns nil when there is none, and
// VALIDATION for one that is not well-formed.
func ParseTags(h http.Header, name string) (*Tags, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // no header is no condition
	}
	rest := strings.Join(values, ",")
	if strings.TrimSpace(rest) == "*" {
		return &Tags{any: true}, nil
	}
	t := &Tags{}
	for rest = strings.TrimLeft(rest, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		weak, after := "", rest
		if strings.HasPrefix(rest, "W/") {
			weak, after = "W/", rest[2:]
		}
		end := -1
		if strings.HasPrefix(after, `"`) {
			end = strings.IndexByte(after[1:], '"') + 1
		}
		if end < 1 || strings.ContainsFunc(after[1:end], func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, fault.New(fault.Validation, `%s: expected entity tags in quotation marks, as in "abc", or *`, name)
		}
		t.list = append(t.list, weak+after[:end+1])
		if rest = after[end+1:]; rest != "" && !strings.ContainsAny(rest[:1], " \t,") {
			return nil, fault.New(fault.Validation, "%s: expected a comma after each entity tag", name)
		}
	}
	return t, nil
}

// Match reports whether one of the tags is that of a representation, by the strong
// comparison that If-Match asks for.
func (t *Tags) Match(etag string) bool { return t.any || slices.Contains(t.list, etag) }

// MatchWeakly is Match by the weak comparison that If-None-Match asks for.
func (t *Tags) MatchWeakly(etag string) bool {
	return t.Match(etag) || slices.Contains(t.list, "W/"+etag)
}
