package records

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"gatehouse/internal/fault"
)

// cursor is the state of a traversal (contract P6). A traversal walks down from
// top, the newest record it saw first, to after, the end of what earlier rounds
// delivered; before is the last record delivered. When a round is complete and
// newer records have been inserted, the next round walks from the newest of
// them down to this round's top. All three are created_at, which no two records
// of a tenant share; the cursor also has the id of the record at before
// (contract P1).
type cursor struct {
	before   int64 // 0 at the start of a round
	beforeID string
	after    int64 // 0 in the first round
	top      int64 // 0 until the round's first page is served
	// keys are those of the last record delivered, of a list in an order (contract
	// P13); such a traversal has one round.
	keys []string
}

// cursorVersion allows a later format to refuse this one.
const cursorVersion = "1"

// macSize is how much of the MAC is in a cursor: 128 bits.
const macSize = 16

// encode returns the cursor as an opaque base64url text, which is valid for one
// tenant, entity type and filter.
func (c cursor) encode(key []byte, scope string) string {
	parts := []string{cursorVersion, instant(c.before), c.beforeID, instant(c.after), instant(c.top)}
	for _, key := range c.keys {
		parts = append(parts, base64.RawURLEncoding.EncodeToString([]byte(key)))
	}
	payload := strings.Join(parts, ".")
	return base64.RawURLEncoding.EncodeToString(append(mac(key, scope, payload), payload...))
}

var errCursor = fault.New(fault.Validation, "cursor: expected a nextCursor of this list, unchanged, with the same filter").
	With("fields", map[string]string{"cursor": "not a cursor of this list"})

// decodeCursor decodes a text that encode returned for the same scope. Anything
// else is VALIDATION.
func decodeCursor(key []byte, scope, text string) (cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < macSize || strings.ContainsAny(text, "\r\n") { // line breaks, which base64 skips
		return cursor{}, errCursor
	}
	payload := string(raw[macSize:])
	if !hmac.Equal(raw[:macSize], mac(key, scope, payload)) {
		return cursor{}, errCursor
	}
	part := strings.Split(payload, ".")
	if len(part) < 5 || part[0] != cursorVersion {
		return cursor{}, errCursor
	}
	c := cursor{beforeID: part[2]}
	for i, to := range map[int]*int64{1: &c.before, 3: &c.after, 4: &c.top} {
		if *to, err = strconv.ParseInt(part[i], 36, 64); err != nil {
			return cursor{}, errCursor
		}
	}
	for _, text := range part[5:] {
		key, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			return cursor{}, errCursor
		}
		c.keys = append(c.keys, string(key))
	}
	return c, nil
}

func instant(at int64) string { return strconv.FormatInt(at, 36) }

func mac(key []byte, scope, payload string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(scope))
	h.Write([]byte{0})
	h.Write([]byte(payload))
	return h.Sum(nil)[:macSize]
}
