package endpoint

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"gatehouse/internal/httpapi"
)

// handler serves a route of the administration.
type handler = func(context.Context, *httpapi.Authed) (httpapi.Reply, error)

// macSize is how much of the MAC is in a cursor: 128 bits.
const macSize = 16

// cursor returns the opaque cursor of the page that comes before an id. It is valid
// for the list, tenant and filter of the request.
func (s *Service) cursor(c *httpapi.Authed, before string) string {
	return base64.RawURLEncoding.EncodeToString(append(s.cursorMAC(c, before), before...))
}

// before returns the id in a cursor; ok is false for a text that cursor did not
// return for the same list.
func (s *Service) before(c *httpapi.Authed, text string) (id string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < macSize {
		return "", false
	}
	id = string(raw[macSize:])
	return id, hmac.Equal(raw[:macSize], s.cursorMAC(c, id))
}

// cursorMAC authenticates an id for the list that a request asks for: its path and
// its query without cursor and limit.
func (s *Service) cursorMAC(c *httpapi.Authed, id string) []byte {
	query := c.Request.URL.Query()
	query.Del("cursor")
	query.Del("limit")
	h := hmac.New(sha256.New, s.cursorKey)
	for _, part := range []string{string(c.Config.Tenant.ID), c.Request.URL.Path, query.Encode(), id} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum(nil)[:macSize]
}
