package httpapi

import (
	"cmp"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"gatehouse/internal/fault"
)

// Body caps (decisions 2.2).
const (
	DataBodyCap = 1 << 20  // /data and custom endpoints by default
	AuthBodyCap = 64 << 10 // /auth
)

// firstRead is how much of a body there is room for before a byte of it came.
const firstRead = 8 << 10

// Body reads the request's body, once. Over the route's cap it is
// PAYLOAD_TOO_LARGE; one that breaks off is VALIDATION; OVERLOADED when too many
// large ones are held. Memory grows as bytes come, whatever was announced.
func (c *Call) Body() ([]byte, error) {
	if c.bodyRead {
		return c.body, nil
	}
	limit := cmp.Or(c.BodyCap, c.Route.BodyCap)
	tooLarge := fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes allowed here", limit)
	if c.Request.ContentLength > limit {
		return nil, tooLarge
	}
	most := limit + 1 // a byte more shows the end, or that there is more
	size := int64(512)
	if announced := c.Request.ContentLength; announced >= 0 {
		most = announced + 1
		size = min(most, firstRead)
	}
	buf := make([]byte, 0, size)
	for {
		if len(buf) == cap(buf) {
			larger := max(min(2*int64(cap(buf)), most), int64(cap(buf))+1)
			if !c.Received.Reach(larger) {
				return nil, errBodies
			}
			buf = append(make([]byte, 0, larger), buf...)
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
			return nil, fault.New(fault.Validation, "the body broke off before its end")
		}
	}
	c.body, c.bodyRead = buf, true
	return buf, nil
}

// Keep counts n bytes that were made of the body and are held beside it until
// the request is answered: OVERLOADED as for Body.
func (c *Call) Keep(n int) error {
	if !c.Received.Reach(int64(cap(c.body) + n)) {
		return errBodies
	}
	return nil
}

// Seen is what was read of the body so far, for the audit log.
func (c *Call) Seen() []byte { return c.body }

// JSON reads the body as one JSON object. A content type other than
// application/json in UTF-8 is UNSUPPORTED_MEDIA_TYPE.
func (c *Call) JSON() (*Object, error) {
	if err := checkJSON(c.Request.Header); err != nil {
		return nil, err
	}
	b, err := c.Body()
	if err != nil {
		return nil, err
	}
	return ParseObject(b)
}

func checkJSON(h http.Header) error {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return fault.New(fault.UnsupportedMediaType, "Content-Encoding: expected none")
	}
	values := h["Content-Type"]
	if len(values) == 1 && values[0] == "application/json" {
		return nil
	}
	unsupported := fault.New(fault.UnsupportedMediaType, "Content-Type: expected application/json")
	if len(values) != 1 {
		return unsupported
	}
	kind, params, err := mime.ParseMediaType(values[0])
	if err != nil || kind != "application/json" {
		return unsupported
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return fault.New(fault.UnsupportedMediaType, "Content-Type: expected charset utf-8")
	}
	return nil
}

// Bearer is the token of an Authorization header of the form "Bearer <token>",
// "" for anything else, two headers included.
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
