// Package user holds the rows of the Users entity: a tenant's staff and the
// end-users of its app.
package user

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// Type tells staff from end-users.
type Type string

// The two types.
const (
	Internal Type = "internal"
	External Type = "external"
)

// ErrUnknown says that there is no such user.
var ErrUnknown = errors.New("there is no such user")

// User is one row of users, and the permission sets assigned to it.
type User struct {
	ID            string
	Email         string // as entered, trimmed
	Name          string
	Locale        string
	Type          Type
	Owner         bool // of the tenant
	Active        bool
	EmailVerified bool
	Pending       bool           // registered, and neither activated nor decided over since
	Role          string         // "" for none
	PasswordHash  string         // PHC text; "" for none
	Custom        jsontext.Value // the JSON object of custom fields
	CreatedAt     int64          // microseconds UTC
	UpdatedAt     int64
	Sets          []string // names of permission sets, sorted
}

// EmailKey is the one canonical form in which e-mail addresses are compared:
// trimmed, NFC, lower case (decisions 2.28).
func EmailKey(email string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(strings.TrimSpace(email))))
}

// CheckEmail reports whether the text can be an e-mail address: one @ with
// something on both sides, no white space or control characters, at most 254 bytes.
func CheckEmail(email string) bool {
	email = strings.TrimSpace(email)
	at := strings.LastIndexByte(email, '@')
	if at < 1 || at == len(email)-1 || len(email) > 254 || strings.Count(email, "@") != 1 {
		return false
	}
	return !strings.ContainsFunc(email, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == '<' || r == '>' || r == ',' || r == ';' || r == '\u2028' || r == '\u2029' || r == '\ufffd'
	})
}
