// Package user holds the rows of the Users entity: a tenant's staff and the
// end-users of its app.
package user

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/email"
	"gatehouse/internal/session"
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

// ID is a user's id.
type ID = session.UserID

// User is one row of users, and the permission sets assigned to it.
type User struct {
	ID            ID
	Email         string // as entered, trimmed and in NFC
	Key           string // what Email is found by, as it is stored
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

// EmailKey is the one canonical form in which e-mail addresses are compared.
func EmailKey(address string) string { return email.Key(address) }

// formerKey is what stands in email_key of an account whose address, in its
// canonical form, is another account's: from before there was that form. No
// canonical form begins with a space.
func formerKey(address string) string { return " " + email.Former(address) }

// CheckEmail returns why no mail can reach an address; nil for one that it can.
func CheckEmail(address string) error { return email.Check(address) }
