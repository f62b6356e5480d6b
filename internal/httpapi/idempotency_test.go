package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

func TestIdempotencyKeys(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		want   string
		ok     bool
	}{
		{http.Header{}, "", true},
		{http.Header{"Idempotency-Key": {"k"}}, "k", true},
		{http.Header{"Idempotency-Key": {strings.Repeat("é", 255)}}, strings.Repeat("é", 255), true},
		{http.Header{"Idempotency-Key": {strings.Repeat("é", 256)}}, "", false},
		{http.Header{"Idempotency-Key": {""}}, "", false},
		{http.Header{"Idempotency-Key": {}}, "", false},
		{http.Header{"Idempotency-Key": {"a", "a"}}, "", false},
	} {
		got, err := httpapi.IdempotencyKey(c.header)
		if got != c.want || (err == nil) != c.ok || err != nil && fault.CodeOf(err) != fault.Validation {
			t.Errorf("%.40v: %.20q, %v", c.header, got, err)
		}
	}
}
