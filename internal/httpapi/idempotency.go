package httpapi

import (
	"net/http"
	"unicode/utf8"

	"gatehouse/internal/fault"
)

// IdempotencyKey returns the caller's name for a request, "" for none. It returns
// VALIDATION unless the name has 1 to 255 characters (contract W2, R18).
func IdempotencyKey(h http.Header) (string, error) {
	values, ok := h["Idempotency-Key"]
	if !ok {
		return "", nil
	}
	if len(values) != 1 || values[0] == "" || utf8.RuneCountInString(values[0]) > 255 {
		return "", fault.New(fault.Validation, "Idempotency-Key: expected one text of 1 to 255 characters")
	}
	return values[0], nil
}
