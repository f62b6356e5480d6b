// Package user stores users: a tenant's staff, who are internal, and the end-users of
// its app, who are external.
package user

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/email"
	"gatehouse/internal/session"
)

// Type distinguishes staff from end-users.
type Type string

// The two types.
const (
	Internal Type = "internal"
	External Type = "external"
)

// ErrUnknown is returned when there is no such user.
var ErrUnknown = errors.New("there is no such user")

// ID is a user's id.
type ID = session.UserID

// User is one row of users, and the permission sets assigned to it.
type User struct {
	ID            ID
	Email         string // as entered, trimmed and in NFC
	Key           string // the stored key by which Email is found
	Name          string
	Locale        string
	Type          Type
	Owner         bool // of the tenant
	Active        bool
	EmailVerified bool
	Pending       bool           // registered, and neither activated nor deactivated since
	Role          string         // "" for none
	PasswordHash  string         // PHC text; "" for none
	Custom        jsontext.Value // the JSON object of custom fields
	CreatedAt     int64          // microseconds UTC
	UpdatedAt     int64
	Sets          []string // names of permission sets, sorted
}

// EmailKey returns the canonical form in which e-mail addresses are compared.
func EmailKey(address string) string { return email.Key(address) }

// formerKey returns the email_key of an account whose canonical address is another
// account's. Such accounts were created before there was a canonical form. No
// canonical form begins with a space.
func formerKey(address string) string { return " " + email.Former(address) }

// CheckEmail returns why mail cannot reach an address, or nil.
func CheckEmail(address string) error { return email.Check(address) }
