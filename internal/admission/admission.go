// Package admission decides who may use what everybody shares: places to run
// in, bytes of memory, the next turn at a writer. Every decision is made by key,
// which is a tenant's id wherever tenants share; a crowd of one key does not
// make another key wait behind it.
//
// Queue gives turns, Gate gives places, Budget gives bytes. None of them knows
// what it is for: who is refused decides what to answer.
package admission

import "errors"

// ErrFull says that there is no place: too many wait already, or the turn did
// not come in time.
var ErrFull = errors.New("admission: full")
