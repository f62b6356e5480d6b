package httpapi

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
)

// Body caps (contract H11).
const (
	DataBodyCap = 1 << 20  // /data and custom endpoints by default
	AuthBodyCap = 64 << 10 // /auth
)

// firstRead is the size of the buffer that is allocated before a byte of the
// body has come.
const firstRead = 8 << 10

// Body reads the request's body, once. It returns PAYLOAD_TOO_LARGE above the
// route's cap, VALIDATION for a body that ends early, and OVERLOADED when too
// many large bodies are held. Memory grows with the bytes received, not with
// the length announced; one that has no room as announced waits for it a little, and
// is refused unread then, so that a crowd of them does not read what is thrown away.
func (c *Call) Body() ([]byte, error) {
	if c.bodyRead {
		return c.body, nil
	}
	limit := cmp.Or(c.BodyCap, c.Route.BodyCap)
	tooLarge := fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes allowed here", limit)
	if c.Request.ContentLength > limit {
		return nil, tooLarge
	}
	most := limit + 1 // one byte more shows whether the body ends at the limit
	size := int64(512)
	if announced := c.Request.ContentLength; announced >= 0 {
		most = announced + 1
		size = min(most, firstRead)
		if !c.Received.Await(c.Request.Context(), announced) {
			return nil, errBodies
		}
	}
	buf := make([]byte, 0, size)
	for {
		if len(buf) == cap(buf) {
			larger := max(min(2*int64(cap(buf)), most), int64(cap(buf))+1)
			if !c.Received.Reach(larger - 1) { // without that byte: what anybody may send to /auth is free
				return nil, errBodies
			}
			buf = append(make([]byte, 0, larger), buf...)
		}
		if len(buf) >= admission.Heavy {
			runtime.Gosched() // what comes fast would not let go of the core
		}
		n, err := c.Request.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return nil, tooLarge
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fault.New(fault.Validation, "the body is incomplete")
		}
	}
	c.body, c.bodyRead = buf, true
	return buf, nil
}

// Keep counts n bytes that were made from the body and are held beside it until
// the request is answered. It returns OVERLOADED like Body.
func (c *Call) Keep(n int) error {
	if !c.Received.Reach(int64(cap(c.body) + n)) {
		return errBodies
	}
	return nil
}

// Seen returns the part of the body that was read so far, for the audit log.
func (c *Call) Seen() []byte { return c.body }

// Parsed reports whether the body is known to be a JSON object.
func (c *Call) Parsed() bool { return c.parsed }

// JSON reads the body as one JSON object. It returns UNSUPPORTED_MEDIA_TYPE for
// a content type other than application/json in UTF-8 (contract H9), and
// otherwise the errors of Body and ParseObject.
func (c *Call) JSON() (*Object, error) {
	if err := CheckJSON(c.Request.Header); err != nil {
		return nil, err
	}
	return c.object()
}

// AnyJSON is JSON for a body that may also be of another format that is JSON, such as
// application/cloudevents+json.
func (c *Call) AnyJSON() (*Object, error) {
	if err := checkJSON(c.Request.Header, true); err != nil {
		return nil, err
	}
	return c.object()
}

func (c *Call) object() (o *Object, err error) {
	b, err := c.Body()
	if err != nil {
		return nil, err
	}
	err = c.Compute(func() error {
		o, err = ParseObject(b)
		c.parsed = err == nil
		return err
	})
	return o, err
}

// Compute runs fn, which goes through the body. If the body is large, that takes a turn at the cores: to parse
// one of 10 MiB takes some 100 ms, which other tenants' short requests would wait for, several of them, one after the other.
// It returns the error of fn, or that of the request's context if that ends before the turn.
func (c *Call) Compute(fn func() error) error {
	if len(c.body) < admission.Heavy {
		return fn()
	}
	work, err := c.Cores.Start(c.Request.Context(), string(c.Config.Tenant.ID))
	if err != nil {
		return err
	}
	defer work.Stop()
	return fn()
}

// Uncompressed reports whether a header announces a body without a content encoding.
func Uncompressed(h http.Header) bool {
	return !slices.ContainsFunc(h["Content-Encoding"], func(e string) bool { return e != "" && !strings.EqualFold(e, "identity") })
}

// CheckJSON returns UNSUPPORTED_MEDIA_TYPE unless a header announces a body of JSON
// in UTF-8 without a content encoding (contract H9).
func CheckJSON(h http.Header) error { return checkJSON(h, false) }

// checkJSON is CheckJSON; with suffix it takes application/*+json, too.
func checkJSON(h http.Header, suffix bool) error {
	if !Uncompressed(h) {
		return fault.New(fault.UnsupportedMediaType, "Content-Encoding: expected none")
	}
	values := h["Content-Type"]
	if len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	unsupported := fault.New(fault.UnsupportedMediaType, "Content-Type: expected application/json")
	if suffix {
		unsupported = fault.New(fault.UnsupportedMediaType, "Content-Type: expected application/json or application/*+json")
	}
	if len(values) != 1 {
		return unsupported
	}
	kind, params, err := mime.ParseMediaType(values[0])
	if err != nil || kind != "application/json" && !(suffix && isJSONBySuffix(kind)) {
		return unsupported
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return fault.New(fault.UnsupportedMediaType, "Content-Type: expected charset utf-8")
	}
	return nil
}

// isJSONBySuffix reports whether a media type is application/NAME+json.
func isJSONBySuffix(kind string) bool {
	name, ok := strings.CutPrefix(kind, "application/")
	return ok && len(name) > len("+json") && strings.HasSuffix(name, "+json")
}

// Bearer returns the token of an Authorization header of the form "Bearer
// <token>", "" for anything else, two headers included.
func Bearer(h http.Header) string {
	values := h["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}
