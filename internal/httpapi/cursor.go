package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"gatehouse/internal/fault"
)

// Cursors makes the cursors of the lists of the admin API: opaque texts that hold
// where the next page begins and cannot be made or changed by a caller.
type Cursors struct{ key []byte }

// NewCursors returns Cursors that are sealed with a key.
func NewCursors(key []byte) Cursors { return Cursors{key} }

// ListScope names the list that a request asks for: its tenant, its path and its query
// without cursor and limit.
func (c *Call) ListScope() string {
	query := c.Request.URL.Query()
	query.Del("cursor")
	query.Del("limit")
	return string(c.Config.Tenant.ID) + " " + c.Request.URL.Path + "?" + query.Encode()
}

// cursorMAC is how much of the MAC is in a cursor: 128 bits.
const cursorMAC = 16

// Seal returns a cursor for a position. scope names the list that the cursor is
// good for: its route, tenant and filter.
func (c Cursors) Seal(scope, position string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.mac(scope, position), position...))
}

// Open returns the position of a cursor that Seal returned for the same scope, and
// "" for the text "". Anything else is VALIDATION.
func (c Cursors) Open(scope, cursor string) (position string, err error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < cursorMAC || strings.ContainsAny(cursor, "\r\n") { // line breaks, which base64 skips
		return "", errCursor
	}
	position = string(raw[cursorMAC:])
	if !hmac.Equal(raw[:cursorMAC], c.mac(scope, position)) {
		return "", errCursor
	}
	return position, nil
}

var errCursor = fault.Fields("cursor: expected a nextCursor of this list, unchanged, with the same filter",
	map[string]string{"cursor": "not a cursor of this list"})

func (c Cursors) mac(scope, position string) []byte {
	h := hmac.New(sha256.New, c.key)
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write([]byte(position))
	return h.Sum(nil)[:cursorMAC]
}
