package endpoint

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
)

// inputs parses the body as the target's inputs. It accepts a form, too, if
// formToo is set. It returns UNSUPPORTED_MEDIA_TYPE, VALIDATION, and the errors of
// httpapi.Call.Body.
func (r *request) inputs(formToo bool) (given inputs.Object, err error) {
	decls, keep, err := r.catalog.declared(r.endpoint.Target)
	if err != nil {
		return nil, err
	}
	if read := formReader(r.call.Request.Header); formToo && read != nil {
		body, err := r.call.Body()
		if err != nil {
			return nil, err
		}
		err = r.call.Compute(func() error {
			form, err := read(body)
			if err != nil {
				return err
			}
			if lengthAsJSON(form) > component.MaxInput {
				return unreadable("expected at most %d MiB as JSON.", component.MaxInput>>20)
			}
			given, err = inputs.FromForm(decls, form, keep, httpapi.ParseValue)
			return err
		})
		return given, err
	}
	object, err := r.call.AnyJSON()
	if formToo && fault.CodeOf(err) == fault.UnsupportedMediaType {
		err = errFormType
	}
	if err != nil {
		return nil, err
	}
	err = r.call.Compute(func() error {
		given, err = inputs.FromJSON(decls, object.Members, keep)
		return err
	})
	return given, err
}

var errFormType = fault.New(fault.UnsupportedMediaType,
	"Content-Type: expected application/json or application/*+json in UTF-8, application/x-www-form-urlencoded or multipart/form-data, not compressed")

// formReader returns what reads a body with that header as a form, or nil if it is
// announced as none (contract N5).
func formReader(h http.Header) func(body []byte) (url.Values, error) {
	values := h["Content-Type"]
	if len(values) != 1 || !httpapi.Uncompressed(h) {
		return nil
	}
	kind, params, err := mime.ParseMediaType(values[0])
	if err != nil {
		return nil
	}
	switch kind {
	case "application/x-www-form-urlencoded":
		if !plainCharset(params["charset"]) {
			return nil
		}
		return encodedForm
	case "multipart/form-data":
		return func(body []byte) (url.Values, error) { return multipartForm(body, params["boundary"]) }
	}
	return nil
}

// The bounds of a form. Even a short field takes some hundred bytes of memory, a part
// of a multipart form some thousand.
const (
	maxFormFields  = 10_000 // url.ParseQuery takes no more
	maxParts       = 1_000
	maxPartHeaders = 8
	maxPartHeader  = 4 << 10 // bytes
	maxBoundary    = 70      // characters, as RFC 2046 has it
)

// unreadable returns the VALIDATION of a form that cannot be read.
func unreadable(format string, args ...any) error {
	return fault.New(fault.Validation, "The form cannot be read: %s", fmt.Sprintf(format, args...))
}

func encodedForm(body []byte) (url.Values, error) {
	if bytes.Count(body, []byte("&")) >= maxFormFields {
		return nil, unreadable("expected at most %d fields.", maxFormFields)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, unreadable("expected name=value pairs, separated by & and percent-encoded.")
	}
	return form, nil
}

// multipartForm reads a form whose parts are values. It returns VALIDATION for one with
// a file, which names its field, and for one over the bounds of forms.
func multipartForm(body []byte, boundary string) (url.Values, error) {
	if boundary == "" || len(boundary) > maxBoundary {
		return nil, unreadable("expected a boundary of 1 to %d characters in Content-Type.", maxBoundary)
	}
	form := url.Values{}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for n := 0; ; n++ {
		part, err := parts.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a form that is cut short has it, too, wrapped
			return form, nil
		}
		if err != nil {
			return nil, unreadable("expected parts of multipart/form-data between its boundaries.")
		}
		if n == maxParts {
			return nil, unreadable("expected at most %d parts.", maxParts)
		}
		field, err := fieldOf(part)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, unreadable("expected parts of multipart/form-data between its boundaries.")
		}
		switch {
		case !field.file:
			form.Add(field.name, string(text))
		case field.fileName != "" || len(text) > 0: // a browser sends an empty one where no file was chosen
			return nil, fault.Fields("The form has a file, and files are not taken.", map[string]string{field.name: "expected a value, found a file"})
		}
	}
}

// formField is what the header of a part says.
type formField struct {
	name     string
	file     bool
	fileName string
}

// fieldOf reads the header of a part. It returns VALIDATION for one that is not a
// value's in UTF-8, or has more than maxPartHeaders or maxPartHeader.
func fieldOf(part *multipart.Part) (formField, error) {
	count, size := 0, 0
	for name, values := range part.Header {
		for _, v := range values {
			count, size = count+1, size+len(name)+len(v)
		}
	}
	if count > maxPartHeaders || size > maxPartHeader {
		return formField{}, unreadable("expected at most %d headers of %d bytes in a part.", maxPartHeaders, maxPartHeader)
	}
	disposition := part.Header["Content-Disposition"]
	if len(disposition) != 1 {
		return formField{}, unreadable("expected one Content-Disposition in each part.")
	}
	kind, params, err := mime.ParseMediaType(disposition[0])
	name, named := params["name"]
	if err != nil || kind != "form-data" || !named {
		return formField{}, unreadable(`expected Content-Disposition: form-data; name="…" in each part.`)
	}
	field := formField{name: name, fileName: params["filename"]}
	_, field.file = params["filename"]
	field.file = field.file || strings.Contains(strings.ToLower(disposition[0]), "filename*") // also one that is not well-formed
	if !field.file && !plainPart(http.Header(part.Header)) {
		return formField{}, unreadable("expected plain text in UTF-8 in each part.")
	}
	return field, nil
}

// plainPart reports whether a part is announced as text in UTF-8 that is neither
// encoded nor made of parts again.
func plainPart(h http.Header) bool {
	if len(h["Content-Transfer-Encoding"]) > 1 || len(h["Content-Type"]) > 1 {
		return false
	}
	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		return false
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if h.Get("Content-Type") == "" {
		return true
	}
	return err == nil && !strings.HasPrefix(kind, "multipart/") && plainCharset(params["charset"])
}

func plainCharset(charset string) bool {
	return slices.Contains([]string{"", "utf-8", "us-ascii"}, strings.ToLower(charset))
}

// lengthAsJSON returns about how long a form is as JSON, in bytes: a control character
// is six there.
func lengthAsJSON(form url.Values) (n int) {
	length := func(text string) {
		n += len(text) + len(`"",`)
		for i := range len(text) {
			switch c := text[i]; {
			case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
				n++
			case c < ' ':
				n += len(`\u0001`) - 1
			}
		}
	}
	for name, texts := range form {
		length(name)
		for _, text := range texts {
			length(text)
		}
	}
	return n
}
