// Package session stores the sessions of end-users. A session is a chain of refresh
// tokens that begins with a login. A transaction that changes a token must hold the
// lock of its chain: Lock takes it, and must be called before End, Replace and Revoke.
//
// A session belongs to the epoch that its user had when it began. A transaction that
// raises a user's epoch must call EndOthers. That is why package user, which stores
// the epoch, imports this one, and package identity, which judges tokens, imports both.
//
// Functions return the errors of package db unless they say otherwise.
package session

import (
	"time"

	"gatehouse/internal/secret"
)

// UserID is the id of a user, which user.ID is an alias of. It is a type of its own
// so that the compiler tells it from other ids, roles and e-mail addresses.
type UserID string

// lifetime is how long a refresh token is valid from its issue.
const lifetime = 30 * 24 * time.Hour

// Reason is why a session ended, in the form that refresh_chains.end_reason stores.
type Reason string

// The reasons.
const (
	ByLogout Reason = "logout"
	ByTheft  Reason = "reuse"
	ByReset  Reason = "reset"
	ByChange Reason = "password" // changed by the user in another session
	ByUser   Reason = "user"     // deactivated or deleted, or an operator set a password
)

// Token is what never changes about a refresh token. Its ID is "" if there is no token.
type Token struct {
	ID, ChainID string
	UserID      UserID
}

// State is the state of a token and its chain at one time. Times are the database's, in
// microseconds; 0 means never.
type State struct {
	Now, ExpiresAt, RotatedAt, RevokedAt int64

	Epoch            int64 // of the user when the session began, or the one that TakeOver gave it
	ChainEnded       bool
	SuccessorRevoked bool
}

// Begin describes a session that begins.
type Begin struct {
	ChainID   string
	UserID    UserID
	Epoch     int64
	TokenID   string
	TokenHash secret.TokenHash // of its first token
}

// Successor is the token that replaces another one.
type Successor struct {
	ID   string
	Hash secret.TokenHash
}

func micros(d time.Duration) int64 { return d.Microseconds() }
