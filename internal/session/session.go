// Package session holds the rows of end-users' sessions: a chain for each login,
// and in it one refresh token after the other. Whoever changes a token holds its
// chain, which End, Replace and Revoke expect of their caller after Look.
//
// A session belongs to the epoch that its user was at when it began. Whatever
// raises a user's epoch calls EndOthers in the same transaction: package user,
// which has the epoch, therefore stands above this one, and package identity,
// which judges the tokens, above both.
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

// Reason is why a session ended, as refresh_chains.end_reason has it.
type Reason string

// The reasons.
const (
	ByLogout Reason = "logout"
	ByTheft  Reason = "reuse"
	ByReset  Reason = "reset"
	ByChange Reason = "password" // changed by the user in another session
	ByUser   Reason = "user"     // deactivated, gone, or with a password given by an operator
)

// Token is what never changes of a refresh token. Its ID is "" where there is none.
type Token struct {
	ID, ChainID string
	UserID      UserID
}

// State is how a token and its chain stand at one instant, all by the database's
// clock, in microseconds; 0 is "not".
type State struct {
	Now, ExpiresAt, RotatedAt, RevokedAt int64

	Epoch            int64 // of the user when the session began, or has been taken over to since
	ChainEnded       bool
	SuccessorRevoked bool
}

// Begin is a session to begin.
type Begin struct {
	ChainID   string
	UserID    UserID
	Epoch     int64
	TokenID   string
	TokenHash secret.TokenHash // of its first token
}

// Successor is the token that takes another one's place.
type Successor struct {
	ID   string
	Hash secret.TokenHash
}

func micros(d time.Duration) int64 { return d.Microseconds() }
