package endpoint

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// answer is an answer in the words of a tenant's own code: a verifier's reply
// (contract W17) or what a component made with respond() (contract X11).
type answer struct {
	status      int
	contentType string // as it is sent
	header      http.Header
	body        []byte
}

// contentTypes are the types that an answer may have, and how they are sent. None of
// them is text/html, image/svg+xml or a script: an answer is served by the host of the
// API, where a page of the tenant's would act with the cookies of whoever opens it.
var contentTypes = map[string]string{
	"text/plain":       "text/plain; charset=utf-8",
	"text/csv":         "text/csv; charset=utf-8",
	"text/xml":         "text/xml; charset=utf-8",
	"application/xml":  "application/xml; charset=utf-8",
	"application/json": "application/json",
}

// answerHeaders are the headers that respond() may set besides Content-Type. A list
// of what is forbidden would never be complete: proxies obey headers of their own,
// such as X-Accel-Redirect.
var answerHeaders = []string{"Content-Disposition", "Content-Language", "Link", "Location"}

const (
	maxReplyBody    = 64 << 10 // bytes of a verifier's reply
	maxHeaderValue  = 1 << 10  // bytes of a header of respond()
	answerPolicy    = "default-src 'none'; sandbox"
	expectedStatus  = "status: expected a whole number from 200 to 299"
	expectedBody    = "body: expected a text, an object or a list"
	expectedContent = "expected one of %s, without a charset or with utf-8"
)

// reply returns the answer as the server sends it. Its policy keeps a browser from
// running what an XML document may have.
func (a *answer) reply() httpapi.Reply {
	h := http.Header{"Content-Security-Policy": {answerPolicy}}
	maps.Copy(h, a.header)
	return httpapi.Reply{Status: a.status, Data: a.body, Bare: true, ContentType: a.contentType, Header: h}
}

// parseReply parses the member reply of what a verifier returned: {status,
// contentType, body}. wrong says what is not as expected; it is "" for a right one.
func parseReply(value jsontext.Value) (a *answer, wrong string) {
	given, err := httpapi.ParseEvent(value, httpapi.MaxEventDepth)
	if err != nil {
		return nil, "reply is not an object of at most " + strconv.Itoa(httpapi.MaxEventDepth) + " levels"
	}
	var parts answerParts
	for _, m := range given.Members {
		switch m.Name {
		case "status":
			parts.status = m.Value
		case "contentType":
			parts.contentType = m.Value
		case "body":
			parts.body = m.Value
		default:
			return nil, "reply has another member than status, contentType and body" // its name may tell a secret (contract W15)
		}
	}
	if a, wrong = parts.answer("contentType"); wrong != "" {
		return nil, "reply." + wrong
	}
	if len(a.body) > maxReplyBody {
		return nil, fmt.Sprintf("reply.body is larger than %d KiB", maxReplyBody>>10)
	}
	// A verifier's result is left as it was written, which is more than JSON allows.
	if k := parts.body.Kind(); (k == '{' || k == '[') && !parts.body.IsValid() {
		return nil, "reply.body is not strict JSON: expected no half of a surrogate pair"
	}
	return a, ""
}

// parseResponse parses what a component gave to respond(): {status, headers, body}. It
// returns EXECUTION_ERROR where that is not as expected.
func parseResponse(value []byte) (*answer, error) {
	wrongly := func(format string, args ...any) error {
		return fault.New(fault.ExecutionError, "respond: %s", fmt.Sprintf(format, args...))
	}
	given, err := httpapi.ParseEvent(value, httpapi.MaxEventDepth)
	if err != nil {
		return nil, wrongly("expected {status, headers, body}, of at most %d levels", httpapi.MaxEventDepth)
	}
	var parts answerParts
	parts.status, _ = given.Get("status")
	parts.body, _ = given.Get("body")
	header := http.Header{}
	if v, _ := given.Get("headers"); v.Kind() != 0 && v.Kind() != 'n' {
		headers, err := httpapi.ParseEvent(v, 1)
		if err != nil {
			return nil, wrongly("headers: expected an object of texts")
		}
		for _, m := range headers.Members {
			name := textproto.CanonicalMIMEHeaderKey(m.Name)
			if _, twice := header[name]; twice || name == "Content-Type" && parts.contentType != nil {
				return nil, wrongly("headers: %s is there twice", name)
			}
			switch {
			case name == "Content-Type":
				parts.contentType = m.Value
			case !slices.Contains(answerHeaders, name):
				return nil, wrongly("headers: %.40q may not be set: expected Content-Type, %s", m.Name, strings.Join(answerHeaders, ", "))
			case m.Value.Kind() != '"' || !validHeader(unquoted(m.Value)):
				return nil, wrongly("headers: %s: expected a text of at most %d characters of printable ASCII", name, maxHeaderValue)
			default:
				header[name] = []string{unquoted(m.Value)}
			}
		}
	}
	a, wrong := parts.answer("headers: Content-Type")
	if wrong != "" {
		return nil, wrongly("%s", wrong)
	}
	a.header = header
	return a, nil
}

// validHeader reports whether a text can be the value of a header.
func validHeader(s string) bool {
	return len(s) <= maxHeaderValue && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}

// answerParts are the parts of an answer as they were given; nil for none.
type answerParts struct{ status, contentType, body jsontext.Value }

// answer checks the parts. wrong names the part that is not as expected; typeName is
// the name of contentType.
func (p *answerParts) answer(typeName string) (a *answer, wrong string) {
	a = &answer{status: http.StatusOK, body: []byte{}}
	switch p.status.Kind() {
	case 0, 'n':
	default:
		n, whole := wholeNumber(p.status)
		if !whole || n < 200 || n > 299 {
			return nil, expectedStatus
		}
		a.status = n
	}
	kind := "text/plain"
	switch p.body.Kind() {
	case 0, 'n':
	case '"':
		a.body = []byte(strings.ToValidUTF8(unquoted(p.body), "\uFFFD"))
	case '{', '[':
		a.body, kind = bytes.Clone(p.body), "application/json"
	default:
		return nil, expectedBody
	}
	isText := kind == "text/plain"
	switch p.contentType.Kind() {
	case 0, 'n':
	case '"':
		kind = mediaType(unquoted(p.contentType))
	default:
		kind = ""
	}
	var known bool
	if a.contentType, known = contentTypes[kind]; !known {
		return nil, typeName + ": " + fmt.Sprintf(expectedContent, strings.Join(slices.Sorted(maps.Keys(contentTypes)), ", "))
	}
	if !isText && kind != "application/json" {
		return nil, "body: an object or a list goes with application/json only"
	}
	if (a.status == http.StatusNoContent || a.status == http.StatusResetContent) && len(a.body) > 0 {
		return nil, fmt.Sprintf("body: an answer with status %d has none", a.status)
	}
	return a, ""
}

// mediaType returns the media type of a Content-Type without parameters, or with
// charset=utf-8 only; "" for any other.
func mediaType(text string) string {
	kind, params, err := mime.ParseMediaType(text)
	if err != nil {
		return ""
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return ""
		}
	}
	return kind
}

// ignored reports whether a target says that it did nothing with a delivery: what it
// returned has the member ignored, and that is true (contract C7).
func ignored(data []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	if !bytes.Contains(data, []byte(`"ignored"`)) || d.PeekKind() != '{' {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		if name.String() == "ignored" {
			return d.PeekKind() == 't'
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}
